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

from msgspec import structs

from holdfast.errors import BlockedForever, Evicted, SnapshotMismatch
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.snapshots import Snapshot
from holdfast.model.values import NULL, Wait
from holdfast.replay import snapshots
from holdfast.replay.asking import Asking
from holdfast.replay.journal import COMMAND_EVENTS, Journal, mismatch
from holdfast.replay.program import Program, StepRequest, TurnResult

MAX_WAITS = 50


class Machine(Asking):
    """Feeds a program and collects what it asks for; see the module's text. What it may ask for is in `Asking`."""

    __slots__ = ("former", "news", "now", "replaying", "started", "stored_bytes", "stored_up_to")

    def __init__(self, make_program: Callable[[Machine], Program]) -> None:
        Asking.__init__(self)
        self.now = 0
        self.replaying = False
        self.started: e.WorkflowStarted | None = None
        self.former: deque[str] | None = None
        """The executions it still has to live through before it is its own: one for each reset ahead."""
        self.news: list[e.HistoryEvent] = []
        """What the next turn will deliver. Nothing is news to a program that has ended."""
        self.stored_up_to = self.stored_bytes = 0
        """How far the newest stored snapshot reaches, and its size: for a program that gives one now and then. What it
        gives must not depend on them."""
        self._program = make_program(self)

    # --- for the host ---

    @property
    def has_news(self) -> bool:
        return bool(self.news)

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
            self.news.append(event)

    def replay(self, history: Sequence[e.HistoryEvent]) -> None:
        """Recreate every recorded turn after those a snapshot has covered; what no recorded turn has seen is left for
        the next live one."""
        rows: dict[int, list[e.HistoryEvent]] = {}
        known = self._up_to
        for event in history:
            body = event.body
            if isinstance(body, e.TurnEvent) and body.up_to > known:
                turn = rows.setdefault(body.up_to, [])
                if isinstance(body, COMMAND_EVENTS):
                    turn.append(event)
                    if type(body) is e.PatchMarked:
                        self._recorded_patches = {*(self._recorded_patches or ()), body.patch_id}
        news = [event for event in history if type(event.body) in _DELIVER and event.seq > known]
        resets = [event.body.from_execution_id for event in news if isinstance(event.body, e.WorkflowReset)]
        self.former = deque(resets) if resets else None
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
        if not self.ended:
            self.news.extend(news[seen:])

    def turn(self) -> TurnResult:
        """Deliver everything there is as one live turn."""
        batch, self.news = self.news, []
        up_to = batch[-1].seq
        fresh = self._turn = TurnResult(up_to)
        self._run_turn(up_to, batch)
        if not self.ended and not self._slots and not self._waiters and not self._program.can_be_called:
            raise BlockedForever(
                "nothing the workflow awaits can ever be settled; it is at: " + "; ".join(self._program.blocked_on())
            )
        return fresh

    def snapshot(self) -> bytes | None:
        """The state after a turn, for `restore`; None if the program gives none, or while it has steps that run."""
        if self.ended or self._steps or self.started is None:
            return None
        program = self._program.snapshot()
        if program is None:
            return None
        return snapshots.written(
            snapshots.MachineState(
                format=snapshots.FORMAT,
                up_to=self._up_to,
                now=self.now,
                started=snapshots.stored(structs.replace(self.started, input=NULL)),
                made=self._made,
                slots=list(self._slots),
                waiters=[(name, len(waiters)) for name, waiters in self._waiters.items()],
                signals=sorted(
                    (seq, name, bytes(value)) for name, queue in self._signals.items() for seq, value in queue
                ),
                unclaimed=[snapshots.stored(event) for event in self._unclaimed or ()],
                patches=self._patches or {},
                program=program,
            )
        )

    def note_stored(self, snapshot: Snapshot) -> None:
        """This snapshot is in the store."""
        self.stored_up_to, self.stored_bytes = snapshot.up_to, len(snapshot.state)

    def restore(self, snapshot: Snapshot, history: Sequence[e.HistoryEvent]) -> None:
        """Go on from a snapshot: `history` is what follows event `snapshot.up_to`. Raises SnapshotMismatch if they do
        not fit; this machine is then of no use."""
        state = snapshots.read(snapshot.state)
        if state.up_to != snapshot.up_to:
            raise SnapshotMismatch(f"it was made after event {state.up_to}")
        if not any(isinstance(event.body, e.TurnEvent) and event.body.up_to == snapshot.up_to for event in history):
            raise SnapshotMismatch(f"its turn, which had seen event {snapshot.up_to}, is not recorded")
        try:
            self._restore_asks(snapshot.up_to, state)
            self._program.restore(state.program, snapshot.build)
        except SnapshotMismatch:
            raise
        except Exception as error:  # a program that can't read it may raise anything
            raise SnapshotMismatch(f"the program can't take it over: {type(error).__name__}: {error}") from error
        self._check_restored(state)
        self.note_stored(snapshot)
        self.replay(history)

    def _restore_asks(self, up_to: int, state: snapshots.MachineState) -> None:
        started = snapshots.recalled(state.started)
        assert isinstance(started, e.WorkflowStarted), "written as such"
        self._up_to = up_to
        self.now = state.now
        self.started = started
        self._turn = TurnResult(0)
        self._made = dict(state.made)
        self._patches = dict(state.patches) or None
        for seq, name, value in state.signals:
            self._signals.setdefault(name, deque()).append((seq, snapshots.payload(value)))
        unclaimed: list[Any] = [snapshots.recalled(event) for event in state.unclaimed]
        self._unclaimed = unclaimed or None

    def _check_restored(self, state: snapshots.MachineState) -> None:
        """The program has to wait for exactly what it waited for; in the same order, whichever it was restored in."""
        slots, waiters = self._slots, self._waiters
        counts = {name: len(waiting) for name, waiting in waiters.items()}
        if slots.keys() != set(state.slots) or counts != dict(state.waiters):
            raise SnapshotMismatch(
                f"the program waits for {sorted(slots)} and signals {sorted(counts)}; when it was made, it waited for "
                f"{sorted(state.slots)} and signals {sorted(name for name, _ in state.waiters)}"
            )
        self._slots = {key: slots[key] for key in state.slots}
        self._waiters = {name: waiters[name] for name, _ in state.waiters}

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
        if not found and not self.ended and self._program.can_be_called:
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
                self._move(body)
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

    def _move(self, reset: e.WorkflowReset) -> None:
        """The turn that sees a reset is the first of the new execution, whatever else it sees."""
        if self.former:
            self.former.popleft()
        self._program.move(reset)


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
