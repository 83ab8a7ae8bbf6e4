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
from typing import Any, Protocol

from holdfast.errors import BlockedForever, DeterminismError, Evicted
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.values import Payload, RetryPolicy, Wait
from holdfast.replay.journal import COMMAND_EVENTS, Journal, mismatch

MAX_WAITS = 50


class Program(Protocol):
    """What a front-end provides. It talks back to the machine while it runs."""

    def start(self, event: e.WorkflowStarted) -> None: ...

    def cancel(self, reason: str) -> None: ...

    def run(self) -> c.Command | None:
        """Run until quiet. A closing command when the program has ended; raises ProgramError when it can't go on."""
        ...

    def close(self) -> None:
        """Throw the program away without letting it run on."""
        ...

    def blocked_on(self) -> list[str]: ...


class Slot(Protocol):
    """Where the outcome of a command goes. `name`, `line` and `until_at` tell people what is waited for."""

    name: str
    line: str
    until_at: int | None

    def settle(self, body: e.EventBody) -> None: ...


class StepRequest:
    """A step the program wants run. `run` is the front-end's own business."""

    __slots__ = ("line", "name", "retry", "run", "step_no", "up_to")

    def __init__(self, step_no: int, name: str, run: Any, *, retry: RetryPolicy, up_to: int, line: str) -> None:
        self.step_no = step_no
        self.name = name
        self.run = run
        self.retry = retry
        self.up_to = up_to
        self.line = line


class TurnResult:
    """What a live turn did. `dropped_steps` are no longer wanted."""

    __slots__ = ("closing", "commands", "dropped_steps", "up_to")

    def __init__(self, up_to: int) -> None:
        self.up_to = up_to
        self.commands: list[c.Command] = []
        self.dropped_steps: list[int] = []
        self.closing = False


class Machine:
    __slots__ = (
        "_error",
        "_journal",
        "_program",
        "_signals",
        "_slots",
        "_steps",
        "_steps_made",
        "_tasks_made",
        "_timers_made",
        "_turn",
        "_undelivered",
        "_unstarted",
        "_up_to",
        "_waiters",
        "dead",
        "ended",
        "now",
        "replaying",
        "started",
    )

    def __init__(self, make_program: Callable[[Machine], Program]) -> None:
        self.now = 0
        self.replaying = False
        self.ended = False
        self.dead = False
        self.started: e.WorkflowStarted | None = None
        self._up_to = 0
        self._undelivered: list[e.HistoryEvent] = []
        self._signals: dict[str, deque[tuple[int, Payload]]] = {}
        self._waiters: dict[str, deque[Any]] = {}
        self._slots: dict[tuple[str, int], Any] = {}
        self._steps: dict[int, StepRequest] = {}
        self._unstarted: list[StepRequest] = []
        self._tasks_made = self._timers_made = self._steps_made = 0
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
        news = [event for event in history if type(event.body) in _DELIVER]
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
        if not self.ended and not self._slots and not self._waiters:
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
        if not self._slots and len(self._waiters) == 1:
            ((name, waiters),) = self._waiters.items()
            return tuple(Wait("signal", name, 0, waiter.line) for waiter in waiters)
        found = [
            Wait(kind, slot.name, number, slot.line, slot.until_at) for (kind, number), slot in self._slots.items()
        ][:MAX_WAITS]
        for name, waiters in self._waiters.items():
            found.extend(Wait("signal", name, 0, waiter.line) for waiter in waiters)
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
        for event in batch:
            if self.ended:
                break
            self._deliver(event)

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
            self.ended = True
            self._turn.closing = True
            self._raise_if(self._record(closing))

    def _on_started(self, event: e.HistoryEvent) -> None:
        assert isinstance(event.body, e.WorkflowStarted), "delivered by type"
        self.started = event.body
        self._program.start(event.body)

    def _on_signal(self, event: e.HistoryEvent) -> None:
        assert isinstance(event.body, e.SignalReceived), "delivered by type"
        name = event.body.signal_name
        waiters, queue = self._waiters.get(name), self._signals.get(name)
        if waiters and queue:
            waiters.popleft().settle_signal(self._take(name))
            if not waiters:
                del self._waiters[name]

    def _on_outcome(self, event: e.HistoryEvent) -> None:
        body: Any = event.body
        key = ("timer", body.timer_no) if type(body) is e.TimerFired else ("task", body.task_no)
        slot = self._slots.pop(key, None)
        if slot is not None:
            slot.settle(body)

    def _on_step(self, event: e.HistoryEvent) -> None:
        body: Any = event.body
        step = self._steps.pop(body.step_no, None)
        if step is None:
            if body.step_no > self._steps_made:
                raise mismatch(event.seq, body, "no such step")
            return
        if step.name != body.name:
            raise mismatch(event.seq, body, f"step {step.step_no} {step.name!r}", line=step.line)
        slot = self._slots.pop(("step", body.step_no), None)
        if slot is not None:
            slot.settle(body)

    def _on_cancel(self, event: e.HistoryEvent) -> None:
        assert isinstance(event.body, e.CancelRequested), "delivered by type"
        self._program.cancel(event.body.reason)

    def _raise_if(self, error: BaseException | None) -> None:
        if error is not None:
            raise error

    # --- for the program ---

    def _record(self, command: c.Command) -> DeterminismError | None:
        if self._journal is not None:
            return self._journal.match(command)
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

    def schedule_task(self, command: Callable[[int], c.ScheduleTask], slot: Slot) -> int:
        self.check_alive()
        self._tasks_made += 1
        number = self._tasks_made
        self._command(command(number))
        self._slots["task", number] = slot
        return number

    def cancel_task(self, number: int, line: str) -> None:
        if not self._stopped and self._slots.pop(("task", number), None) is not None:
            self._command(c.CancelTask(task_no=number, line=line))

    def start_timer(self, fire_at: int, line: str, slot: Slot) -> int:
        self.check_alive()
        self._timers_made += 1
        number = self._timers_made
        self._command(c.StartTimer(timer_no=number, fire_at=fire_at, line=line))
        self._slots["timer", number] = slot
        return number

    def cancel_timer(self, number: int, line: str) -> None:
        if not self._stopped and self._slots.pop(("timer", number), None) is not None:
            self._command(c.CancelTimer(timer_no=number, line=line))

    def request_step(self, name: str, run: Any, retry: RetryPolicy, line: str, slot: Slot) -> int:
        self.check_alive()
        self._steps_made += 1
        number = self._steps_made
        step = self._steps[number] = StepRequest(number, name, run, retry=retry, up_to=self._up_to, line=line)
        self._unstarted.append(step)
        self._slots["step", number] = slot
        return number

    def drop_step(self, number: int) -> None:
        if not self._stopped and self._slots.pop(("step", number), None) is not None:
            self._steps.pop(number, None)
            self._turn.dropped_steps.append(number)

    # --- signals ---

    def signal_count(self, name: str) -> int:
        queue = self._signals.get(name)
        return len(queue) if queue else 0

    def take_signal(self, name: str) -> Payload | None:
        """The next value of this name, unless somebody is already waiting for it."""
        return self._take(name) if self._signals.get(name) and not self._waiters.get(name) else None

    def _take(self, name: str) -> Payload:
        queue = self._signals[name]
        _, value = queue.popleft()
        if not queue:
            del self._signals[name]
        return value

    def drain_signals(self, name: str) -> list[Payload]:
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


_DELIVER: dict[type[Any], str] = {
    e.WorkflowStarted: "_on_started",
    e.SignalReceived: "_on_signal",
    e.TimerFired: "_on_outcome",
    e.TaskCompleted: "_on_outcome",
    e.TaskFailed: "_on_outcome",
    e.StepCompleted: "_on_step",
    e.StepFailed: "_on_step",
    e.CancelRequested: "_on_cancel",
}
