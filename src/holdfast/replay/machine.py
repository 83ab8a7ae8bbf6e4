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

from holdfast.errors import BlockedForever, Evicted
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.values import Wait
from holdfast.replay.journal import COMMAND_EVENTS, Journal, mismatch
from holdfast.replay.program import Program, StepRequest, TurnResult
from holdfast.replay.syscalls import Syscalls

MAX_WAITS = 50


class Machine(Syscalls):
    """Feeds a program and collects what it asks for; see the module's text. What it may ask for is in `Syscalls`."""

    __slots__ = ("now", "pending_events", "replaying", "reset_sources", "started")

    def __init__(self, make_program: Callable[[Machine], Program]) -> None:
        Syscalls.__init__(self)
        self.now = 0
        self.replaying = False
        self.started: e.WorkflowStarted | None = None
        self.reset_sources: deque[str] | None = None
        """The executions it still has to live through before it is its own: one for each reset ahead."""
        self.pending_events: list[e.HistoryEvent] = []
        """What the next turn will deliver. Nothing is news to a program that has ended."""
        self._program = make_program(self)

    # --- for the host ---

    @property
    def has_pending_events(self) -> bool:
        return bool(self.pending_events)

    @property
    def up_to(self) -> int:
        return self._up_to

    @property
    def program(self) -> Program:
        """For a host that wants to ask it something."""
        return self._program

    def feed(self, event: e.HistoryEvent) -> None:
        """An event for the next turn. Rows a turn has written, other than finished steps, are no news to it."""
        if not self.ended and type(event.body) in _DELIVER:
            self.pending_events.append(event)

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
                        self._recorded_patches = {*(self._recorded_patches or ()), body.patch_id}
        pending_events = [event for event in history if type(event.body) in _DELIVER]
        resets = [event.body.from_execution_id for event in pending_events if isinstance(event.body, e.WorkflowReset)]
        self.reset_sources = deque(resets) if resets else None
        seen = 0
        self.replaying = True
        self._turn = TurnResult(0)
        try:
            for up_to in sorted(rows):
                if self.ended:
                    break
                first, seen = seen, bisect_right(pending_events, up_to, key=_seq)
                self._journal = Journal(up_to, rows[up_to])
                self._run_turn(up_to, pending_events[first:seen])
                self._raise_if(self._journal.finish())
        finally:
            self.replaying = False
            self._journal = None
        if not self.ended:
            self.pending_events.extend(pending_events[seen:])

    def turn(self) -> TurnResult:
        """Deliver everything there is as one live turn."""
        batch, self.pending_events = self.pending_events, []
        up_to = batch[-1].seq
        fresh = self._turn = TurnResult(up_to)
        self._run_turn(up_to, batch)
        if not self.ended and not self._slots and not self._waiters and not self._program.has_handlers:
            raise BlockedForever(
                "nothing the workflow awaits can ever be settled; it is at: " + "; ".join(self._program.blocked_on())
            )
        return fresh

    def unstarted_steps(self) -> list[StepRequest]:
        """Steps wanted and not yet handed out, in order. One whose outcome was never recorded runs again after a
        replay."""
        if not self._unstarted:
            return []
        found = [step for step in self._unstarted if step.step_no in self._steps]
        self._unstarted = []
        return found

    def wants_steps(self) -> bool:
        return bool(self._unstarted)

    def waits(self) -> tuple[Wait, ...]:
        """What the program is blocked on, for people; the first fifty."""
        if not self._slots and len(self._waiters) == 1 and not self.watched:
            ((name, waiters),) = self._waiters.items()
            return tuple(Wait("signal", name, 0, waiter.line) for waiter in waiters)
        found = [
            Wait(slot.kind if kind == "wait" else kind, slot.name, number, slot.line, slot.until_at)
            for (kind, number), slot in islice(self._slots.items(), MAX_WAITS)
        ]
        for name, waiters in self._waiters.items():
            found.extend(Wait("signal", name, 0, waiter.line) for waiter in waiters)
        found.extend(Wait("condition", condition.name, 0, condition.line) for condition in self.conditions)
        if not found and not self.ended and self._program.has_handlers:
            # It awaits something of its own, an asyncio.Event perhaps, that only a handler can settle.
            found.extend(Wait("call", "", 0, place) for place in self._program.blocked_on())
        return tuple(found[:MAX_WAITS])

    def unread(self) -> tuple[int, ...]:
        """The numbers of the signals that were seen but never taken."""
        return tuple(sorted(seq for queue in self._signals.values() for seq, _ in queue)) if self._signals else ()

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
            body = event.body
            if type(body) is e.SignalReceived:
                queue = self._signals.setdefault(body.signal_name, deque())
                queue.append((event.seq, body.signal_value))
            elif type(body) is e.WorkflowReset:
                self._notify_reset(body)
        for event in batch:
            closing = self._deliver(event)
            if closing is not None:
                self._end(closing)
                return
        if self._state_changes or self._metadata_changes:
            self._show_changes()

    def _deliver(self, event: e.HistoryEvent) -> c.Command | None:
        deliver = _DELIVER[type(event.body)]
        at = event.at
        if deliver is _ON_STEP:
            # It carries its own time: a turn run ahead has to know it before the commit gives the row its own.
            at = event.body.finished_at or at  # type: ignore[attr-defined]  # delivered by type
        if at > self.now:  # noqa: PLR1730 - a call of `max` costs five times as much
            self.now = at
        try:
            deliver(self, event)
        except Evicted:
            # What an update is answered is not decided inside the program: there is nothing to unwind.
            raise self._error or Evicted from None
        closing = self._program.run()
        if self._error is not None:
            raise self._error
        return closing

    def _end(self, closing: c.Command) -> None:
        if self._state_changes or self._metadata_changes:
            self._show_changes()
        self.ended = True
        self._turn.closing = True
        error = self._record(closing)
        if error is not None:
            raise error

    def _on_started(self, event: e.HistoryEvent) -> None:
        assert isinstance(event.body, e.WorkflowStarted), "delivered by type"
        self.started = event.body
        # One that was to begin later lives from then on, not from the call that asked for it.
        if event.body.start_at is not None:
            self.now = max(self.now, event.body.start_at)
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
        self._unclaimed = [*(self._unclaimed or ()), event]

    def _on_step(self, event: e.HistoryEvent) -> None:
        body: Any = event.body
        step = self._steps.pop(body.step_no, None)
        if step is None:
            if body.step_no > self._made.get("step", 0):
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

    def _notify_reset(self, reset: e.WorkflowReset) -> None:
        """The turn that sees a reset is the first of the new execution, whatever else it sees."""
        if self.reset_sources:
            self.reset_sources.popleft()
        self._program.on_reset(reset)


def _seq(event: e.HistoryEvent) -> int:
    return event.seq


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


_HANDLERS: dict[type[Any], str] = {
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
_DELIVER: dict[type[Any], Callable[[Machine, e.HistoryEvent], None]] = {
    kind: vars(Machine)[name] for kind, name in _HANDLERS.items()
}
_ON_STEP = _DELIVER[e.StepCompleted]
