"""What a program may ask of its machine: work, waits, signals, marks. The machine's other half delivers events.

Every ask is a command. In a live turn it is collected, in a recorded one compared with what was recorded; the program
can't tell the difference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from holdfast.errors import DeterminismError, Evicted, QueryNotReadOnly
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.values import Failure, Payload, RetryPolicy
from holdfast.replay.journal import Journal
from holdfast.replay.program import Program, Slot, StepRequest, TurnResult, WaitSlot


class Syscalls:
    """The state of a program's asks and the methods that change it."""

    __slots__ = (
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
        "_unstarted",
        "_up_to",
        "_waiters",
        "dead",
        "ended",
        "frozen",
        "watched",
    )

    _program: Program
    _turn: TurnResult

    def __init__(self) -> None:
        self.ended = False
        self.dead = False
        self.frozen = False
        """While a query looks at the program: whatever would change it is refused."""
        self._up_to = 0
        self._signals: dict[str, deque[tuple[int, Payload]]] = {}
        self._waiters: dict[str, deque[Any]] = {}
        self.watched: dict[Any, None] | None = None
        """Conditions, in order of creation."""
        self._unclaimed: list[e.EventReceived] | None = None
        self._slots: dict[tuple[str, int], Any] = {}
        self._steps: dict[int, StepRequest] = {}
        self._unstarted: list[StepRequest] = []
        # How many of each kind the program has asked for: their numbers.
        self._made: dict[str, int] = {}
        # Most programs never need these: a machine is made for every execution, and an empty container costs as well.
        self._patches: dict[str, bool] | None = None
        self._recorded_patches: set[str] | None = None
        self._state_changes: dict[str, Payload | None] | None = None
        self._metadata_changes: dict[str, str | None] | None = None
        self._journal: Journal | None = None
        self._error: BaseException | None = None

    def _raise_if(self, error: BaseException | None) -> None:
        if error is not None:
            raise error

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
        if self.dead or self.ended or self._error is not None:
            raise Evicted
        if self.frozen:
            raise QueryNotReadOnly

    def _next(self, kind: str) -> int:
        if self.dead or self.ended or self._error is not None or self.frozen:
            self.check_alive()  # says which
        number = self._made[kind] = self._made.get(kind, 0) + 1
        return number

    def schedule_task(self, command: Callable[[int], c.ScheduleTask], slot: Slot) -> int:
        number = self._next("task")
        self._command(command(number))
        self._slots["task", number] = slot
        return number

    def listen(self, kind: str, number: int, slot: Slot) -> None:
        """Go on listening for work that was taken back: an outcome recorded before that still counts."""
        if not self._stopped:
            self._slots[kind, number] = slot

    def unlisten(self, kind: str, number: int) -> None:
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
        step = self._steps[number] = StepRequest(number, name, run, retry, self._up_to, line)
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

    def awaits_outcomes(self) -> bool:
        return bool(self._slots)

    def open_slots(self, *kinds: str) -> list[Any]:
        """What of these kinds has no outcome yet, in order of creation."""
        return [slot for (kind, _), slot in self._slots.items() if kind in kinds]

    # --- conditions: the front-end's own business, except that people want to see them ---

    def watch(self, condition: Any) -> None:
        self.check_alive()
        if self.watched is None:
            self.watched = {}
        self.watched[condition] = None

    def unwatch(self, condition: Any) -> None:
        if self.watched is not None:
            self.watched.pop(condition, None)

    @property
    def conditions(self) -> tuple[Any, ...]:
        """In order of creation. They alone keep no program alive: something else has to make one true."""
        return tuple(self.watched) if self.watched else ()

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
        for place, event in enumerate(self._unclaimed or ()):
            if accepts(event):
                return self._unclaimed.pop(place) if self._unclaimed else None
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
        if self._patches is None:
            self._patches = {}
        known = self._patches.get(patch_id)
        if known is None:
            known = self._journal is None or patch_id in (self._recorded_patches or ())
            if known:
                self._command(c.MarkPatch(patch_id=patch_id, line=line))
            self._patches[patch_id] = known
        return known

    def deprecate_patch(self, patch_id: str, line: str) -> None:
        """The code before the patch is gone; histories that carry its mark are still replayed."""
        self.check_alive()
        if self._journal is not None and self._journal.next_is_patch(patch_id):
            self._command(c.MarkPatch(patch_id=patch_id, line=line))
            self._patches = {**(self._patches or {}), patch_id: True}

    # --- what others may see ---

    def change_state(self, key: str, value: Payload | None) -> None:
        self.check_alive()
        if self._state_changes is None:
            self._state_changes = {}
        self._state_changes[key] = value

    def change_metadata(self, key: str, value: str | None) -> None:
        self.check_alive()
        if self._metadata_changes is None:
            self._metadata_changes = {}
        self._metadata_changes[key] = value

    def _show_changes(self) -> None:
        """One event for all that a turn has changed."""
        if self._state_changes:
            values, removed = _parted(self._state_changes)
            self._raise_if(self._record(c.ChangeState(values=values, removed=removed)))
            self._state_changes = None
        if self._metadata_changes:
            texts, gone = _parted(self._metadata_changes)
            self._raise_if(self._record(c.ChangeMetadata(values=texts, removed=gone)))
            self._metadata_changes = None

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


def _parted(changes: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What was set, and what was taken away."""
    values = {key: value for key, value in changes.items() if value is not None}
    return values, tuple(key for key, value in changes.items() if value is None)
