"""The machine that drives one program: events in, commands out.

A turn delivers the events the program has not seen, up to a number: first every signal among them becomes visible in
its queue, then the events are delivered in history order, the program running until it is quiet after each. Live
turns and recorded ones run through the same code; a recorded turn only compares its commands instead of collecting
them. That is why `has_signal`, `drain_signals` and `now` answer on replay what they answered live.

The machine must not: read a clock, wait, log, or know what kind of program it drives.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from holdfast.errors import BlockedForever, DeterminismError, Evicted, QueryNotReadOnly
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.values import Failure, Payload, RetryPolicy, Wait
from holdfast.replay.journal import COMMAND_EVENTS, Journal, mismatch
from holdfast.replay.program import Program, Slot, StepRequest, TurnResult, WaitSlot

MAX_WAITS = 50


class Machine:
    __slots__ = (
        "_conditions",
        "_error",
        "_journal",
        "_made",
        "_metadata_changes",
        "_patches",
        "_program",
        "_recorded_patches",
        "_signals",
        "_slots",
        "_state_changes",
        "_steps",
        "_turn",
        "_unclaimed",
        "_undelivered",
        "_unstarted",
        "_up_to",
        "_waiters",
        "dead",
        "ended",
        "former",
        "frozen",
        "now",
        "replaying",
        "started",
    )

    def __init__(self, make_program: Callable[[Machine], Program]) -> None:
        self.now = 0
        self.replaying = False
        self.ended = False
        self.dead = False
        self.frozen = False
        """While a query looks at the program: whatever would change it is refused."""
        self.started: e.WorkflowStarted | None = None
        self.former: deque[str] = deque()
        """The executions it still has to live through before it is its own: one for each reset ahead."""
        self._up_to = 0
        self._undelivered: list[e.HistoryEvent] = []
        self._signals: dict[str, deque[tuple[int, Payload]]] = {}
        self._waiters: dict[str, deque[Any]] = {}
        self._conditions: dict[Any, None] = {}
        self._unclaimed: list[e.EventReceived] = []
        self._slots: dict[tuple[str, int], Any] = {}
        self._steps: dict[int, StepRequest] = {}
        self._unstarted: list[StepRequest] = []
        # How many of each kind the program has asked for: their numbers.
        self._made = {"task": 0, "timer": 0, "step": 0, "child": 0, "external_signal": 0, "promise": 0, "wait": 0}
        self._patches: dict[str, bool] = {}
        self._recorded_patches: set[str] = set()
        self._state_changes: dict[str, Payload | None] = {}
        self._metadata_changes: dict[str, str | None] = {}
        self._journal: Journal | None = None
        self._turn: TurnResult
        self._error: BaseException | None = None
        self._program = make_program(self)

    # --- for the host ---

    @property
    def has_news(self) -> bool:
        return bool(self._undelivered) and not self.ended

    @property
    def up_to(self) -> int:
        return self._up_to

    @property
    def program(self) -> Program:
        """For a host that wants to ask it something."""
        return self._program

    def feed(self, event: e.HistoryEvent) -> None:
        """An event for the next turn. Rows a turn has written, other than finished steps, are no news to it."""
        if type(event.body) in _DELIVER:
            self._undelivered.append(event)

    def replay(self, history: Sequence[e.HistoryEvent]) -> None:
        """Recreate every recorded turn; what no recorded turn has seen is left for the next live one."""
        rows: dict[int, list[e.HistoryEvent]] = {}
        for event in history:
            body = event.body
            if isinstance(body, e.TurnEvent):
                turn = rows.setdefault(body.up_to, [])
                if isinstance(body, COMMAND_EVENTS):
                    turn.append(event)
                    if type(body) is e.PatchMarked:
                        self._recorded_patches.add(body.patch_id)
        news = [event for event in history if type(event.body) in _DELIVER]
        self.former = deque(event.body.from_execution_id for event in news if isinstance(event.body, e.WorkflowReset))
        seen = 0
        self.replaying = True
        self._turn = TurnResult(0)
        try:
            for up_to in sorted(rows):
                if self.ended:
                    break
                first, seen = seen, bisect_right(news, up_to, key=_seq)
                self._journal = Journal(up_to, rows[up_to])
                self._run_turn(up_to, news[first:seen])
                self._raise_if(self._journal.finish())
        finally:
            self.replaying = False
            self._journal = None
        self._undelivered.extend(news[seen:])

    def turn(self) -> TurnResult:
        """Deliver everything there is as one live turn."""
        batch, self._undelivered = self._undelivered, []
        up_to = batch[-1].seq
        fresh = self._turn = TurnResult(up_to)
        self._run_turn(up_to, batch)
        if not self.ended and not self._slots and not self._waiters and not self._program.can_be_called:
            raise BlockedForever(
                "nothing the workflow awaits can ever be settled; it is at: " + "; ".join(self._program.blocked_on())
            )
        return fresh

    def unstarted_steps(self) -> list[StepRequest]:
        """Steps wanted and not yet handed out, in order. One whose outcome was never recorded runs again after a
        replay."""
        found = [step for step in self._unstarted if step.step_no in self._steps]
        self._unstarted = []
        return found

    @property
    def wants_steps(self) -> bool:
        return bool(self._unstarted)

    def waits(self) -> tuple[Wait, ...]:
        """What the program is blocked on, for people; the first fifty."""
        if not self._slots and len(self._waiters) == 1 and not self._conditions:
            ((name, waiters),) = self._waiters.items()
            return tuple(Wait("signal", name, 0, waiter.line) for waiter in waiters)
        found = [
            Wait(slot.kind if kind == "wait" else kind, slot.name, number, slot.line, slot.until_at)
            for (kind, number), slot in islice(self._slots.items(), MAX_WAITS)
        ]
        for name, waiters in self._waiters.items():
            found.extend(Wait("signal", name, 0, waiter.line) for waiter in waiters)
        found.extend(Wait("condition", condition.name, 0, condition.line) for condition in self._conditions)
        if not found and not self.ended and self._program.can_be_called:
            # It awaits something of its own, an asyncio.Event perhaps, that only a handler can settle.
            found.extend(Wait("call", "", 0, place) for place in self._program.blocked_on())
        return tuple(found[:MAX_WAITS])

    def unread(self) -> tuple[int, ...]:
        """The numbers of the signals that were seen but never taken."""
        return tuple(sorted(seq for queue in self._signals.values() for seq, _ in queue))

    def close(self) -> None:
        if not self.dead:
            self.dead = True
            self._program.close()
            # Machine and program refer to each other: without this only the garbage collector could free them.
            del self._program

    # --- delivering ---

    def _run_turn(self, up_to: int, batch: list[e.HistoryEvent]) -> None:
        self._up_to = up_to
        for event in batch:
            if type(event.body) is e.SignalReceived:
                queue = self._signals.setdefault(event.body.signal_name, deque())
                queue.append((event.seq, event.body.signal_value))
            elif type(event.body) is e.WorkflowReset:
                self._move(event.body)
        for event in batch:
            if self.ended:
                break
            self._deliver(event)
        if not self.ended:
            self._show_changes()

    def _deliver(self, event: e.HistoryEvent) -> None:
        deliver = _DELIVER.get(type(event.body))
        if deliver is None:
            return
        # A finished step carries its own time: a turn run ahead has to know it before the commit gives the row its own.
        at = getattr(event.body, "finished_at", 0) or event.at
        self.now = max(self.now, at)
        getattr(self, deliver)(event)
        closing = self._program.run()
        self._raise_if(self._error)
        if closing is not None:
            self._show_changes()
            self.ended = True
            self._turn.closing = True
            self._raise_if(self._record(closing))

    def _on_started(self, event: e.HistoryEvent) -> None:
        assert isinstance(event.body, e.WorkflowStarted), "delivered by type"
        self.started = event.body
        # One that was to begin later lives from then on, not from the call that asked for it.
        self.now = max(self.now, event.body.start_at or 0)
        self._program.start(event.body)

    def _on_signal(self, event: e.HistoryEvent) -> None:
        assert isinstance(event.body, e.SignalReceived), "delivered by type"
        name = event.body.signal_name
        waiters, queue = self._waiters.get(name), self._signals.get(name)
        if queue and self._program.takes_signal(name):
            self.hand_over_signal(name)
        elif waiters and queue:
            waiters.popleft().settle_signal(self._take(name))
            if not waiters:
                del self._waiters[name]

    def _on_outcome(self, event: e.HistoryEvent) -> None:
        body: Any = event.body
        kind, number = _KEYS[type(body)]
        slot = self._slots.pop((kind, getattr(body, number)), None)
        if slot is not None:
            slot.settle(body)
        elif type(body) is e.EventReceived:
            self._offer(body)

    def _offer(self, event: e.EventReceived) -> None:
        """It came for a wait that had been given up by then. Perhaps nobody else can have it: another wait of this
        program may, or one that begins later."""
        for (kind, number), slot in self._slots.items():
            if kind == "wait" and slot.accepts(event):
                del self._slots[kind, number]
                self._raise_if(self._record(c.CancelWait(wait_no=number, line=slot.line)))
                slot.settle(event)
                return
        self._unclaimed.append(event)

    def _on_step(self, event: e.HistoryEvent) -> None:
        body: Any = event.body
        step = self._steps.pop(body.step_no, None)
        if step is None:
            if body.step_no > self._made["step"]:
                raise mismatch(event.seq, body, "no such step")
        elif step.name != body.name:
            raise mismatch(event.seq, body, f"step {step.step_no} {step.name!r}", line=step.line)
        slot = self._slots.pop(("step", body.step_no), None)
        if slot is not None:
            slot.settle(body)

    def _on_cancel(self, event: e.HistoryEvent) -> None:
        assert isinstance(event.body, e.CancelRequested), "delivered by type"
        self._program.cancel(event.body.reason)

    def _on_update(self, event: e.HistoryEvent) -> None:
        assert isinstance(event.body, e.UpdateRequested), "delivered by type"
        self._program.update(event.body)

    def _on_reset(self, event: e.HistoryEvent) -> None:
        """Nothing happens to the program; but a turn takes place, with whatever is new."""

    def _move(self, reset: e.WorkflowReset) -> None:
        """The turn that sees a reset is the first of the new execution, whatever else it sees."""
        if self.former:
            self.former.popleft()
        self._program.move(reset)

    def _raise_if(self, error: BaseException | None) -> None:
        if error is not None:
            raise error

    # --- for the program ---

    def _record(self, command: c.Command) -> DeterminismError | None:
        if self._journal is not None:
            return None if isinstance(command, c.OBSERVATIONS) else self._journal.match(command)
        self._turn.commands.append(command)
        return None

    def _command(self, command: c.Command) -> None:
        error = self._record(command)
        if error is not None:
            # Unwind the program; a handler of its own can't eat that.
            self._error = self._error or error
            raise Evicted

    @property
    def _stopped(self) -> bool:
        return self.dead or self.ended or self._error is not None

    def check_alive(self) -> None:
        if self._stopped:
            raise Evicted
        if self.frozen:
            raise QueryNotReadOnly

    def _next(self, kind: str) -> int:
        self.check_alive()
        self._made[kind] += 1
        return self._made[kind]

    def schedule_task(self, command: Callable[[int], c.ScheduleTask], slot: Slot) -> int:
        number = self._next("task")
        self._command(command(number))
        self._slots["task", number] = slot
        return number

    def hear(self, kind: str, number: int, slot: Slot) -> None:
        """Go on listening for work that was taken back: an outcome recorded before that still counts."""
        if not self._stopped:
            self._slots[kind, number] = slot

    def unhear(self, kind: str, number: int) -> None:
        if not self._stopped:
            self._slots.pop((kind, number), None)

    def cancel_task(self, number: int, line: str) -> None:
        if not self._stopped and self._slots.pop(("task", number), None) is not None:
            self._command(c.CancelTask(task_no=number, line=line))

    def start_timer(self, fire_at: int, line: str, slot: Slot) -> int:
        number = self._next("timer")
        self._command(c.StartTimer(timer_no=number, fire_at=fire_at, line=line))
        self._slots["timer", number] = slot
        return number

    def cancel_timer(self, number: int, line: str) -> None:
        if not self._stopped and self._slots.pop(("timer", number), None) is not None:
            self._command(c.CancelTimer(timer_no=number, line=line))

    def request_step(self, name: str, run: Any, retry: RetryPolicy, line: str, slot: Slot) -> int:
        number = self._next("step")
        step = self._steps[number] = StepRequest(number, name, run, retry=retry, up_to=self._up_to, line=line)
        self._unstarted.append(step)
        self._slots["step", number] = slot
        return number

    def drop_step(self, number: int) -> None:
        if not self._stopped and self._slots.pop(("step", number), None) is not None:
            self._steps.pop(number, None)
            self._turn.dropped_steps.append(number)

    def start_child(self, command: Callable[[int], c.StartChild], slot: Slot) -> c.StartChild | e.ChildStarted:
        """The child as it is recorded: its id and what was decided then stay what they were, whatever the code says
        now."""
        number = self._next("child")
        asked = command(number)
        self._command(asked)
        self._slots["child", number] = slot
        if self._journal is not None:
            recorded: e.ChildStarted = self._journal.matched
            return recorded
        return asked

    def cancel_child(self, number: int, line: str) -> None:
        if not self._stopped and self._slots.pop(("child", number), None) is not None:
            self._command(c.CancelChild(child_no=number, line=line))

    def signal_external(self, command: Callable[[int], c.SignalExternal], slot: Slot) -> int:
        number = self._next("external_signal")
        self._command(command(number))
        self._slots["external_signal", number] = slot
        return number

    def forget_slot(self, kind: str, number: int) -> None:
        """Nobody wants the outcome any more, and it can't be taken back."""
        self._slots.pop((kind, number), None)

    def open_slots(self, *kinds: str) -> list[Any]:
        """What of these kinds has no outcome yet, in order of creation."""
        return [slot for (kind, _), slot in self._slots.items() if kind in kinds]

    # --- conditions: the front-end's own business, except that people want to see them ---

    def watch(self, condition: Any) -> None:
        self.check_alive()
        self._conditions[condition] = None

    def unwatch(self, condition: Any) -> None:
        self._conditions.pop(condition, None)

    @property
    def conditions(self) -> tuple[Any, ...]:
        """In order of creation. They alone keep no program alive: something else has to make one true."""
        return tuple(self._conditions)

    # --- promises, events, broadcasts ---

    def create_promise(self, command: Callable[[int, int | None], c.CreatePromise], slot: Slot, *, timed: bool) -> int:
        """The time-out, too, is settled by the engine: it has a timer number but no slot of its own."""
        number = self._next("promise")
        timer_no = self._next("timer") if timed else None
        self._command(command(number, timer_no))
        self._slots["promise", number] = slot
        return number

    def cancel_promise(self, number: int, name: str, line: str) -> None:
        if not self._stopped and self._slots.pop(("promise", number), None) is not None:
            self._command(c.CancelPromise(promise_no=number, name=name, line=line))

    def start_wait(self, command: Callable[[int], c.StartWait], slot: WaitSlot) -> int:
        number = self._next("wait")
        self._command(command(number))
        self._slots["wait", number] = slot
        return number

    def cancel_wait(self, number: int, line: str) -> None:
        if not self._stopped and self._slots.pop(("wait", number), None) is not None:
            self._command(c.CancelWait(wait_no=number, line=line))

    def take_unclaimed(self, accepts: Callable[[e.EventReceived], bool]) -> e.EventReceived | None:
        """The first event that came for a wait which was given up before it knew, if there is one to be had."""
        self.check_alive()
        for place, event in enumerate(self._unclaimed):
            if accepts(event):
                return self._unclaimed.pop(place)
        return None

    def send(self, command: c.Publish | c.ThrowBroadcast) -> None:
        """Something for others, of which this program hears no more."""
        self.check_alive()
        self._command(command)

    # --- changes of code ---

    def patched(self, patch_id: str, line: str) -> bool:
        """Whether this execution runs the code behind a patch: the same answer for the whole of its life.

        A new execution marks the patch in its history; a turn recorded without the mark was made by the code before.
        """
        self.check_alive()
        known = self._patches.get(patch_id)
        if known is None:
            known = self._journal is None or patch_id in self._recorded_patches
            if known:
                self._command(c.MarkPatch(patch_id=patch_id, line=line))
            self._patches[patch_id] = known
        return known

    def deprecate_patch(self, patch_id: str, line: str) -> None:
        """The code before the patch is gone; histories that carry its mark are still replayed."""
        self.check_alive()
        if self._journal is not None and self._journal.next_is_patch(patch_id):
            self._command(c.MarkPatch(patch_id=patch_id, line=line))
            self._patches[patch_id] = True

    # --- what others may see ---

    def change_state(self, key: str, value: Payload | None) -> None:
        self.check_alive()
        self._state_changes[key] = value

    def change_metadata(self, key: str, value: str | None) -> None:
        self.check_alive()
        self._metadata_changes[key] = value

    def _show_changes(self) -> None:
        """One event for all that a turn has changed."""
        if self._state_changes:
            values, removed = _parted(self._state_changes)
            self._raise_if(self._record(c.ChangeState(values=values, removed=removed)))
            self._state_changes = {}
        if self._metadata_changes:
            texts, gone = _parted(self._metadata_changes)
            self._raise_if(self._record(c.ChangeMetadata(values=texts, removed=gone)))
            self._metadata_changes = {}

    # --- updates ---

    def accept_update(self, update_id: str) -> None:
        self.check_alive()
        self._command(c.AcceptUpdate(update_id=update_id))

    def reject_update(self, update_id: str, failure: Failure) -> None:
        self.check_alive()
        self._command(c.RejectUpdate(update_id=update_id, failure=failure))

    def complete_update(self, update_id: str, result: Payload) -> None:
        self.check_alive()
        self._command(c.CompleteUpdate(update_id=update_id, result=result))

    def fail_update(self, update_id: str, failure: Failure) -> None:
        self.check_alive()
        self._command(c.FailUpdate(update_id=update_id, failure=failure))

    # --- signals ---

    def hand_over_signal(self, name: str) -> None:
        """Give the first queued signal of this name to its handler."""
        seq, value = self._pop_signal(name)
        self._program.signal(name, value, seq)

    def queued_signals(self) -> list[tuple[int, str]]:
        """Number and name of everything in the queues, in order of arrival."""
        return sorted((seq, name) for name, queue in self._signals.items() for seq, _ in queue)

    def refuse_signal(self, seq: int, reason: str) -> None:
        """A handler could not read this signal: it becomes a dead letter."""
        if self._journal is None:
            self._turn.refused.append((seq, reason))

    def signal_count(self, name: str) -> int:
        queue = self._signals.get(name)
        return len(queue) if queue else 0

    def take_signal(self, name: str) -> Payload | None:
        """The next value of this name, unless somebody is already waiting for it."""
        return self._take(name) if self._signals.get(name) and not self._waiters.get(name) else None

    def _take(self, name: str) -> Payload:
        return self._pop_signal(name)[1]

    def _pop_signal(self, name: str) -> tuple[int, Payload]:
        if self.frozen:
            raise QueryNotReadOnly
        queue = self._signals[name]
        first = queue.popleft()
        if not queue:
            del self._signals[name]
        return first

    def drain_signals(self, name: str) -> list[Payload]:
        if self.frozen:
            raise QueryNotReadOnly
        return [value for _, value in self._signals.pop(name, ())]

    def wait_signal(self, name: str, waiter: Any) -> None:
        self.check_alive()
        self._waiters.setdefault(name, deque()).append(waiter)

    def drop_waiter(self, name: str, waiter: Any) -> None:
        waiters = self._waiters.get(name)
        if waiters is not None and waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._waiters[name]


def _seq(event: e.HistoryEvent) -> int:
    return event.seq


def _parted(changes: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What was set, and what was taken away."""
    values = {key: value for key, value in changes.items() if value is not None}
    return values, tuple(key for key, value in changes.items() if value is None)


_KEYS: dict[type[Any], tuple[str, str]] = {
    e.TimerFired: ("timer", "timer_no"),
    e.TaskCompleted: ("task", "task_no"),
    e.TaskFailed: ("task", "task_no"),
    e.ChildCompleted: ("child", "child_no"),
    e.ChildFailed: ("child", "child_no"),
    e.ExternalSignalDelivered: ("external_signal", "signal_no"),
    e.ExternalSignalFailed: ("external_signal", "signal_no"),
    e.PromiseResolved: ("promise", "promise_no"),
    e.PromiseRejected: ("promise", "promise_no"),
    e.PromiseTimedOut: ("promise", "promise_no"),
    e.EventReceived: ("wait", "wait_no"),
    e.BroadcastReceived: ("wait", "wait_no"),
}


_DELIVER: dict[type[Any], str] = {
    e.WorkflowStarted: "_on_started",
    e.SignalReceived: "_on_signal",
    e.TimerFired: "_on_outcome",
    e.TaskCompleted: "_on_outcome",
    e.TaskFailed: "_on_outcome",
    e.StepCompleted: "_on_step",
    e.StepFailed: "_on_step",
    e.ChildCompleted: "_on_outcome",
    e.ChildFailed: "_on_outcome",
    e.ExternalSignalDelivered: "_on_outcome",
    e.ExternalSignalFailed: "_on_outcome",
    e.PromiseResolved: "_on_outcome",
    e.PromiseRejected: "_on_outcome",
    e.PromiseTimedOut: "_on_outcome",
    e.EventReceived: "_on_outcome",
    e.BroadcastReceived: "_on_outcome",
    e.UpdateRequested: "_on_update",
    e.CancelRequested: "_on_cancel",
    e.WorkflowReset: "_on_reset",
}
