"""`MockWorkflowContext`: one workflow driven by hand-fed events, without engine, database or event loop.

The workflow runs on the same machine that runs it in production, one event at a time in the order of virtual time; its
events are kept as a real history, which is replayed at the end: code that is not the same on every replay fails its
unit test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from holdfast.client.views import instant, microseconds, result_of
from holdfast.engine.execution_info import workflow_result
from holdfast.engine.rules.workspace import Outcome as Ending
from holdfast.errors import InvalidRequest, NeverSettled
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.durations import Duration
from holdfast.model.executions import Status
from holdfast.model.failures import failure_of
from holdfast.model.names import check_name
from holdfast.model.payloads import decode, encode
from holdfast.model.values import Failure
from holdfast.replay.definition import Definition, definition_of
from holdfast.replay.journal import RECORDED_AS
from holdfast.replay.machine import Machine
from holdfast.replay.program import StepRequest
from holdfast.testing.fakes import checked_error
from holdfast.testing.feeds import Feed, Feeds, Outcome, Settled, Target, arguments_of, delay_of
from holdfast.testing.histories import program_maker
from holdfast.testing.mock_outside import MockOutside, Published, Settling, published_by
from holdfast.testing.virtual_time import START

MAX_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class MockCall:
    """What the workflow asked for. `kind` is task, step, child, signal, event, message or broadcast; `name` the task's
    or child's kind, the step's name, the signal's name, the event's key."""

    kind: str
    name: str
    args: tuple[Any, ...]
    at: datetime
    line: str


@dataclass(slots=True)
class MockTimer:
    """A sleep or the time-out of a wait. `outcome`: pending, fired or cancelled."""

    duration: timedelta
    fire_at: datetime
    line: str
    outcome: str = "pending"


@dataclass(slots=True)
class MockUpdate:
    """An update that was fed. `status`: waiting, accepted, rejected, completed or failed."""

    name: str
    status: str = "waiting"
    result: Any = None
    failure: Failure | None = None


@dataclass(slots=True)
class _Coming:
    """Something that will happen at an instant, unless it is taken back."""

    at: int
    key: tuple[str, int]
    bodies: Callable[[], Iterable[e.EventBody]]


class MockWorkflowContext:
    """Feed it, `run` the workflow, look at what it asked for. One of these is for one run.

    Whatever the workflow waits for has to be fed; timers fire by themselves, in order of time.
    """

    def __init__(
        self,
        *,
        start: datetime = START,
        workflow_id: str = "workflow",
        workflow_execution_id: str = "execution",
        org: str = "default",
        metadata: dict[str, str] | None = None,
        check_replay: bool = True,
        max_events: int = MAX_EVENTS,
    ) -> None:
        self._start_at = microseconds(start, "start")
        self._now = self._start_at
        self._workflow_id = workflow_id
        self._execution_id = workflow_execution_id
        self._org = org
        self._metadata = metadata
        self._check_replay = check_replay
        self._max_events = max_events
        self._feeds = {"task or step": Feeds(), "child": Feeds()}
        self._coming: list[_Coming] = []
        self._timers: dict[int, MockTimer] = {}
        self._unfed: dict[tuple[str, int], str] = {}
        self._signals: dict[int, tuple[str, Any]] = {}
        self._updates: dict[str, MockUpdate] = {}
        self._outside = MockOutside(lambda: self._now)
        self._machine: Machine
        self.history: list[e.HistoryEvent] = []
        """What happened, as a real history: fit for `holdfast.testing.replay`."""
        self.calls: list[MockCall] = []
        """The tasks, steps and children the workflow asked for and the signals it sent, in order."""
        self.unread_signals: list[tuple[str, Any]] = []
        """Signals that came and were never taken: names and values."""
        self.state: dict[str, Any] = {}
        """What the workflow has put into `ctx.state`."""
        self.continued_with: Any = None
        """The input of the next run, when the workflow has ended with `ctx.continue_as_new`."""

    # --- feeding ---

    def signal(self, name: str, value: Any = None, *, after: Duration = 0) -> None:
        """A signal. It is there when the workflow starts, or comes `after` so many seconds."""
        check_name(name, "name")
        payload = encode(value, field="value")
        at = self._after(after)
        self._expect(
            at, ("signal", len(self._coming)), lambda: e.SignalReceived(signal_name=name, signal_value=payload)
        )

    def cancel(self, reason: str = "", *, after: Duration = 0) -> None:
        """Ask the workflow to stop, at its start or later."""
        at = self._after(after)
        self._expect(at, ("cancel", len(self._coming)), lambda: e.CancelRequested(reason=reason))

    def update(self, name: str, input: Any = None, *, after: Duration = 0) -> MockUpdate:
        """An update for a class workflow, at its start or later. The answer tells what became of it."""
        check_name(name, "name")
        update_id = f"update-{len(self._updates) + 1}"
        update = self._updates[update_id] = MockUpdate(name)
        payload = encode(input, field="input")
        at = self._after(after)
        self._expect(
            at,
            ("update", len(self._coming)),
            lambda: e.UpdateRequested(update_id=update_id, update_name=name, input=payload),
        )
        return update

    def resolve(self, name: str, value: Any = None, *, after: Duration = 0) -> None:
        """Resolve the promise of this name: so long after the start, or when the workflow makes it if that is later.

        With a value that does not fit its type, `run` raises PromiseValueInvalid.
        """
        check_name(name, "name")
        self._outside.settle(name, Settling(self._after(after), encode(value, field="value")))

    def reject(self, name: str, error: BaseException | type[BaseException], *, after: Duration = 0) -> None:
        """Reject the promise of this name: the workflow gets PromiseRejected."""
        check_name(name, "name")
        self._outside.settle(name, Settling(self._after(after), failure=failure_of(checked_error(error))))

    def event(self, key: str, data: Any = None, *, after: Duration = 0, consume_on_read: bool = False) -> None:
        """Publish an event, at the start or later: for whoever waits for its key then, or looks back afterwards."""
        check_name(key, "key")
        self._publish(key, data, None, after, consume=consume_on_read)

    def message(self, name: str, correlation_key: str, data: Any = None, *, after: Duration = 0) -> None:
        """Send a message, at the start or later."""
        check_name(name, "name")
        check_name(correlation_key, "correlation_key")
        self._publish(name, data, correlation_key, after, consume=True)

    def _publish(self, key: str, data: Any, correlation: str | None, after: Duration, *, consume: bool) -> None:
        number = self._outside.next_number()
        event = Published(
            id=number,
            at=0,
            key=key,
            data=encode(data, field="data"),
            correlation=correlation,
            consume=consume,
            fed=True,
        )
        self._expect_all(self._after(after), ("published", number), lambda: self._outside.publish(event))

    def broadcast(self, name: str, *, after: Duration | None = None) -> None:
        """A broadcast: as soon as the workflow waits for it, or so long after the start. Whoever does not wait then
        misses it."""
        check_name(name, "name")
        if after is None:
            self._outside.promise_broadcast(name)
            return
        number = self._outside.next_number()
        self._expect_all(self._after(after), ("published", number), lambda: self._outside.throw(name, number))

    def result(self, target: Target, *values: Any, after: Duration = 0) -> None:
        """The results of a task (function or kind) or step (function or name): one for each call, in order.

        A function in the place of a value computes it from the call's arguments, for this call and those to come; what
        it raises is the call's failure. `after`: how long the call takes, in virtual time.
        """
        self._feed("task or step", target, values, after)

    def failure(self, target: Target, *errors: BaseException | type[BaseException], after: Duration = 0) -> None:
        """Final failures of a task or step, retries included: the workflow gets TaskFailed or StepFailed."""
        self._feed("task or step", target, [checked_error(error) for error in errors], after)

    def timeout(self, target: Target, limit: str = "start_to_close", *, after: Duration = 0) -> None:
        """A task that has passed a time limit for good: the workflow gets TaskTimedOut."""
        outcome = Outcome(TimeoutError(f"{limit} passed"), after, limit)
        self._feeds["task or step"].of(target).add(outcome)

    def child_result(self, target: Target, *values: Any, after: Duration = 0) -> None:
        """The results of a child workflow (function or kind), as with `result`."""
        self._feed("child", target, values, after)

    def child_failure(self, target: Target, *errors: BaseException | type[BaseException], after: Duration = 0) -> None:
        """Failures of a child workflow: the workflow gets ChildWorkflowFailed."""
        self._feed("child", target, [checked_error(error) for error in errors], after)

    def _feed(self, role: str, target: Target, values: Any, after: Duration) -> None:
        if not values:
            raise InvalidRequest("nothing was fed: give at least one value", field="values")
        feed = self._feeds[role].of(target)
        for value in values:
            feed.add(Outcome(value, after))

    # --- what came of it ---

    @property
    def now(self) -> datetime:
        return instant(self._now)

    @property
    def slept(self) -> timedelta:
        """How much time has passed."""
        return timedelta(microseconds=self._now - self._start_at)

    @property
    def timers(self) -> list[MockTimer]:
        return list(self._timers.values())

    @property
    def unused(self) -> dict[str, int]:
        """Outcomes that were fed and never asked for, per target."""
        return {**self._feeds["task or step"].unused, **self._feeds["child"].unused, **self._outside.unused}

    def called(self, target: Target) -> list[tuple[Any, ...]]:
        """The arguments of every call of a task, step or child."""
        name = Feed(target).name
        return [call.args for call in self.calls if call.name == name]

    # --- running ---

    def run(self, workflow: Callable[..., Any], input: Any = None) -> Any:
        """Run the workflow to its end; its result. Raises as `handle.result()` does if it fails or is cancelled.

        NeverSettled if it waits for something that was not fed: the message names it and its line.
        """
        definition = definition_of(workflow)
        if definition is None:
            raise InvalidRequest(f"{workflow!r} is not a workflow: decorate it with @workflow", field="workflow")
        if self.history:
            raise InvalidRequest("this context was used: make a new one for every run", field="workflow")
        self._machine = machine = self._make(definition)
        try:
            self._begin(definition, encode(input, field="input"))
            self._turn(machine)
            while not machine.ended:
                self._next_event()
                if machine.has_news:
                    self._turn(machine)
            self.unread_signals = [self._signals[seq] for seq in machine.unread()]
        finally:
            machine.close()
        if self._check_replay:
            again = self._make(definition)
            try:
                again.replay(self.history)
            finally:
                again.close()
        return self._ending(definition)

    def _make(self, definition: Definition) -> Machine:
        return Machine(program_maker(definition, self._org, self._execution_id))

    def _begin(self, definition: Definition, payload: Any) -> None:
        self._come(
            e.WorkflowStarted(
                kind=definition.kind,
                version=definition.version,
                workflow_id=self._workflow_id,
                input=payload,
                metadata=self._metadata,
            )
        )
        # What is there from the beginning belongs to the first turn, as with signal-with-start.
        for coming in [coming for coming in self._coming if coming.at <= self._now]:
            self._coming.remove(coming)
            self._happen(coming)

    def _turn(self, machine: Machine) -> None:
        turn = machine.turn()
        for number in turn.dropped_steps:
            self._take_back("step", number)
        for command in turn.commands:
            if type(command) in RECORDED_AS:
                self._record(self._as_event(command, turn.up_to))
            react = _REACT.get(type(command))
            if react is not None:
                react(self, command)
        if not machine.ended:
            self._record(e.TurnCompleted(up_to=turn.up_to))
        for request in machine.unstarted_steps():
            self._start_step(request)

    def _as_event(self, command: c.Command, up_to: int) -> e.EventBody:
        if isinstance(command, c.ContinueWorkflow):
            started = self._machine.started
            assert started is not None, "nothing can end before it has begun"
            return e.WorkflowContinued(
                up_to=up_to,
                new_execution_id=f"{self._execution_id}-next",
                kind=command.kind or started.kind,
                version=command.version or started.version,
                input=command.input,
            )
        fields = msgspec.structs.asdict(command)
        if isinstance(command, c.Publish):
            fields["event_id"] = self._send(command)
        elif isinstance(command, c.ThrowBroadcast):
            fields["broadcast_id"] = self._throw(command)
        return RECORDED_AS[type(command)](up_to=up_to, **fields)

    def _next_event(self) -> None:
        """The earliest of what is to come; of those at one instant, what was fed comes before timers."""
        if not self._coming:
            raise NeverSettled(self._why_not(), waits=self._machine.waits())
        if len(self.history) >= self._max_events:
            raise NeverSettled(
                f"no end after {len(self.history)} events, at {self.now}; it waits for: {self._waits()}",
                waits=self._machine.waits(),
            )
        coming = min(self._coming, key=lambda found: (max(found.at, self._now), found.key[0].startswith("timer")))
        self._coming.remove(coming)
        self._now = max(self._now, coming.at)
        self._happen(coming)

    def _happen(self, coming: _Coming) -> None:
        for body in coming.bodies():
            self._come(body)

    def _come(self, body: e.EventBody) -> None:
        event = self._record(body)
        if isinstance(body, e.SignalReceived):
            self._signals[event.seq] = (body.signal_name, decode(body.signal_value, Any, field=body.signal_name))
        if isinstance(body, e.TimerFired):
            self._timers[body.timer_no].outcome = "fired"
        self._machine.feed(event)

    def _record(self, body: e.EventBody) -> e.HistoryEvent:
        event = e.HistoryEvent(len(self.history) + 1, self._now, body)
        self.history.append(event)
        return event

    def _expect(self, at: int, key: tuple[str, int], body: Callable[[], e.EventBody]) -> None:
        self._expect_all(at, key, lambda: (body(),))

    def _expect_all(self, at: int, key: tuple[str, int], bodies: Callable[[], Iterable[e.EventBody]]) -> None:
        self._coming.append(_Coming(at, key, bodies))

    def _after(self, after: Duration) -> int:
        return self._start_at + delay_of(after) // timedelta(microseconds=1)

    def _take_back(self, kind: str, number: int) -> None:
        self._coming = [coming for coming in self._coming if coming.key != (kind, number)]
        self._unfed.pop((kind, number), None)

    # --- what the workflow asks for ---

    def _ask(
        self,
        key: tuple[str, int],
        call: MockCall,
        feed: Feed | None,
        body: Callable[[Settled], e.EventBody],
    ) -> None:
        """Note the call, and let its fed outcome come when its time is over."""
        self.calls.append(call)
        outcome = feed.take() if feed is not None else None
        if outcome is None:
            times = sum(known.name == call.name and known.kind == call.kind for known in self.calls)
            self._unfed[key] = f"{call.kind} {call.name!r} (call {times}) has no outcome: feed one"
            return
        settled = outcome.settle(call.name, call.args)
        self._expect(self._now + outcome.after_us, key, lambda: body(settled))

    def _start_step(self, request: StepRequest) -> None:
        fn, args = request.run
        feed = self._feeds["task or step"].find(fn, request.name)
        started_at = self._now

        def ended(settled: Settled) -> e.EventBody:
            facts: dict[str, Any] = {
                "up_to": request.up_to,
                "step_no": request.step_no,
                "name": request.name,
                "started_at": started_at,
                "finished_at": self._now,
                "line": request.line,
            }
            if settled.failure is not None:
                return e.StepFailed(failure=settled.failure, attempts=request.retry.max_attempts or 1, **facts)
            return e.StepCompleted(result=settled.result, **facts)

        name = request.name if feed is None else feed.name
        call = MockCall("step", name, tuple(args), self.now, request.line)
        self._ask(("step", request.step_no), call, feed, ended)

    def _schedule_task(self, command: c.ScheduleTask) -> None:
        feed = self._feeds["task or step"].find(command.kind)
        attempts = command.retry.max_attempts or 1

        def ended(settled: Settled) -> e.EventBody:
            if settled.failure is not None:
                return e.TaskFailed(
                    task_no=command.task_no, failure=settled.failure, attempt=attempts, timeout=settled.timeout
                )
            return e.TaskCompleted(task_no=command.task_no, result=settled.result)

        args = arguments_of(command.input, feed.definition if feed is not None else None)
        call = MockCall("task", command.kind, args, self.now, command.line)
        self._ask(("task", command.task_no), call, feed, ended)

    def _start_child(self, command: c.StartChild) -> None:
        feed = self._feeds["child"].find(command.kind)
        child: dict[str, Any] = {"child_no": command.child_no, "child_execution_id": command.child_execution_id}

        def ended(settled: Settled) -> e.EventBody:
            if settled.failure is not None:
                return e.ChildFailed(status="failed", failure=settled.failure, **child)
            return e.ChildCompleted(result=settled.result, **child)

        args = (decode(command.input, Any, field="input"),)
        call = MockCall("child", command.kind, args, self.now, command.line)
        self._ask(("child", command.child_no), call, feed, ended)

    def _cancel_child(self, command: c.CancelChild) -> None:
        self._take_back("child", command.child_no)

    def _signal_external(self, command: c.SignalExternal) -> None:
        """Signals to others always arrive; the test reads them in `calls`."""
        args = (command.target, decode(command.signal_value, Any, field=command.signal_name))
        self.calls.append(MockCall("signal", command.signal_name, args, self.now, command.line))
        number = command.signal_no
        self._expect(
            self._now,
            ("external_signal", number),
            lambda: e.ExternalSignalDelivered(
                signal_no=number, target_execution_id=command.target, signal_event_sequence=1
            ),
        )

    def _create_promise(self, command: c.CreatePromise) -> None:
        number = command.promise_no
        settling = self._outside.created(command)
        if settling is not None:
            at = max(settling.at, self._now)
            self._expect_all(at, ("promise", number), lambda: self._outside.settled(number, settling))
        if command.expires_at is not None:
            self._expect_all(command.expires_at, ("timer of promise", number), lambda: self._outside.timed_out(number))

    def _cancel_promise(self, command: c.CancelPromise) -> None:
        self._outside.cancelled(command.promise_no)

    def _start_wait(self, command: c.StartWait) -> None:
        number = command.wait_no
        self._outside.waits(command)
        self._expect_all(self._now, ("wait", number), lambda: self._outside.at_once(number))

    def _cancel_wait(self, command: c.CancelWait) -> None:
        self._outside.no_longer_waits(command.wait_no)

    def _send(self, command: c.Publish) -> int:
        kind, to = ("event", ()) if command.correlation is None else ("message", (command.correlation,))
        args = (*to, decode(command.data, Any, field=command.key))
        self.calls.append(MockCall(kind, command.key, args, self.now, command.line))
        event = published_by(command, self._outside.next_number())
        self._expect_all(self._now, ("published", event.id), lambda: self._outside.publish(event))
        return event.id

    def _throw(self, command: c.ThrowBroadcast) -> int:
        self.calls.append(MockCall("broadcast", command.name, (), self.now, command.line))
        number = self._outside.next_number()
        self._expect_all(self._now, ("published", number), lambda: self._outside.throw(command.name, number))
        return number

    def _start_timer(self, command: c.StartTimer) -> None:
        number = command.timer_no
        duration = timedelta(microseconds=command.fire_at - self._now)
        self._timers[number] = MockTimer(duration, instant(command.fire_at), command.line)
        self._expect(command.fire_at, ("timer", number), lambda: e.TimerFired(timer_no=number))

    def _cancel_timer(self, command: c.CancelTimer) -> None:
        self._timers[command.timer_no].outcome = "cancelled"
        self._take_back("timer", command.timer_no)

    def _cancel_task(self, command: c.CancelTask) -> None:
        self._take_back("task", command.task_no)

    def _change_state(self, command: c.ChangeState) -> None:
        for key in command.removed:
            self.state.pop(key, None)
        self.state.update({key: decode(value, Any, field=key) for key, value in command.values.items()})

    def _answer_update(self, command: c.AcceptUpdate | c.RejectUpdate | c.CompleteUpdate | c.FailUpdate) -> None:
        update = self._updates[command.update_id]
        match command:
            case c.AcceptUpdate():
                update.status = "accepted"
            case c.CompleteUpdate():
                update.status, update.result = "completed", decode(command.result, Any, field=update.name)
            case c.RejectUpdate():
                update.status, update.failure = "rejected", command.failure
            case c.FailUpdate():
                update.status, update.failure = "failed", command.failure

    def _continue(self, command: c.ContinueWorkflow) -> None:
        self.continued_with = decode(command.input, Any, field="input")

    # --- the end ---

    def _ending(self, definition: Definition) -> Any:
        last = self.history[-1]
        if isinstance(last.body, e.WorkflowContinued):
            return None
        return result_of(workflow_result("", Ending(_STATUS[type(last.body)], last)), definition.result_type)

    def _waits(self) -> str:
        return "; ".join(_told(wait.kind, wait.name, wait.line) for wait in self._machine.waits()) or "nothing"

    def _why_not(self) -> str:
        unfed = f". {'; '.join(self._unfed.values())}" if self._unfed else ""
        return f"the workflow waits for something that was not fed: {self._waits()}{unfed}"


def _told(kind: str, name: str, line: str) -> str:
    return f"{kind} {name!r}{f' at {line}' if line else ''}"


_STATUS: dict[type[Any], Status] = {
    e.WorkflowCompleted: Status.COMPLETED,
    e.WorkflowFailed: Status.FAILED,
    e.WorkflowCancelled: Status.CANCELLED,
}

_REACT: dict[type[Any], Callable[[MockWorkflowContext, Any], None]] = {
    c.ScheduleTask: MockWorkflowContext._schedule_task,  # noqa: SLF001 - its own table
    c.CancelTask: MockWorkflowContext._cancel_task,  # noqa: SLF001 - as above
    c.StartTimer: MockWorkflowContext._start_timer,  # noqa: SLF001 - as above
    c.CancelTimer: MockWorkflowContext._cancel_timer,  # noqa: SLF001 - as above
    c.StartChild: MockWorkflowContext._start_child,  # noqa: SLF001 - as above
    c.CancelChild: MockWorkflowContext._cancel_child,  # noqa: SLF001 - as above
    c.SignalExternal: MockWorkflowContext._signal_external,  # noqa: SLF001 - as above
    c.CreatePromise: MockWorkflowContext._create_promise,  # noqa: SLF001 - as above
    c.CancelPromise: MockWorkflowContext._cancel_promise,  # noqa: SLF001 - as above
    c.StartWait: MockWorkflowContext._start_wait,  # noqa: SLF001 - as above
    c.CancelWait: MockWorkflowContext._cancel_wait,  # noqa: SLF001 - as above
    c.AcceptUpdate: MockWorkflowContext._answer_update,  # noqa: SLF001 - as above
    c.RejectUpdate: MockWorkflowContext._answer_update,  # noqa: SLF001 - as above
    c.CompleteUpdate: MockWorkflowContext._answer_update,  # noqa: SLF001 - as above
    c.FailUpdate: MockWorkflowContext._answer_update,  # noqa: SLF001 - as above
    c.ChangeState: MockWorkflowContext._change_state,  # noqa: SLF001 - as above
    c.ContinueWorkflow: MockWorkflowContext._continue,  # noqa: SLF001 - as above
}
