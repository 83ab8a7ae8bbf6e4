"""An engine made up on the spot, in memory: it answers a program's commands with outcomes in a random order.

It keeps what the real one promises and nothing more: numbers without gaps, times that never go back, rows of a commit
together, one outcome each. Events come whenever they like: before a turn, between a turn and its commit, in any order
and grouping. Now and then the worker dies and the program is rebuilt from its history. The same random numbers make the
same history.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar

import msgspec
from msgspec import Raw

from holdfast.errors import ProgramError
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.executions import Execution, State
from holdfast.model.values import Failure
from holdfast.replay.journal import RECORDED_AS
from holdfast.replay.machine import Machine
from tests.replay.programs import HANDLED, NAMES, definition_of
from tests.replay.recording import OBSERVED_AS, machine_for, replayed
from verification.invariants import Record

START = 1_800_000_000_000_000
MAX_EVENTS = 150
CLOSE_ROUNDS = 3
OOPS = Failure(type="ValueError", message="made up")
CALLS = (e.SignalReceived, e.UpdateRequested, e.CancelRequested)
EXECUTION_ID = "01a1e247-0000-7000-8000-000000000000"
OWN = (EXECUTION_ID, "w")


class World:
    """One execution. `cuts` are the lengths at which a crash could have cut its history. `latest` is the history of the
    world that was made last, to be shown when something fails."""

    latest: ClassVar[list[e.HistoryEvent]] = []

    def __init__(self, program: dict[str, Any], rng: Random) -> None:
        self.rng = rng
        self.program = program
        self.code = definition_of(program)
        self.history: list[e.HistoryEvent] = []
        World.latest = self.history
        self.stuck: ProgramError | None = None
        self._now = START
        self._inside: set[int] = set()
        self._open: dict[tuple[str, int], Any] = {}
        self._steps: dict[int, Any] = {}
        self._rounds = 0
        self._unrecorded: list[int] = []
        """Turns without commands, by what they had seen: the next commit tells of them."""
        self._calls = self._calls_to_come()
        self._machine = machine_for(self.code, EXECUTION_ID)

    @property
    def ended(self) -> bool:
        return bool(self.history) and self.history[-1].body.TERMINAL

    @property
    def cuts(self) -> list[int]:
        return [length for length in range(1, len(self.history) + 1) if length not in self._inside]

    def _calls_to_come(self) -> list[e.EventBody]:
        """What others will send, in order."""
        rng, found = self.rng, []
        names = NAMES + HANDLED if self.program["class"] else NAMES
        for number in range(rng.randint(0, 6)):
            if self.program["class"] and rng.random() < 0.3:
                body: e.EventBody = e.UpdateRequested(
                    update_id=f"u{number}",
                    update_name=rng.choice(("ask", "ask", "unknown")),
                    input=_raw(rng.choice((number, -number, "text"))),
                )
            else:
                value = number if rng.random() < 0.9 else "text"
                body = e.SignalReceived(signal_name=rng.choice(names), signal_value=_raw(value))
            found.append(body)
        if rng.random() < 0.3:
            found.insert(rng.randint(0, len(found)), e.CancelRequested(reason="enough"))
        return found

    # --- going on ---

    def play(self) -> None:
        """Until the end, until nothing can happen any more, or for long enough."""
        self._add(e.WorkflowStarted(kind="k", workflow_id="w", input=_raw(self.program)))
        asked = any(isinstance(body, e.CancelRequested) for body in self._calls)
        try:
            while not self.ended and len(self.history) < MAX_EVENTS:
                if self._happen():
                    continue
                if asked:
                    return
                asked = True
                self._add(e.CancelRequested(reason="at last"))
        except ProgramError as error:
            self.stuck = error
        finally:
            self._machine.close()

    def _happen(self) -> bool:
        """One thing that can happen now; whether there was any."""
        rng = self.rng
        if rng.random() < 0.06:
            self._die()
        ways: list[Any] = []
        if self._machine.has_pending_events:
            ways += [self._turn] * 4
        if self._calls:
            ways.append(self._call)
        if self._open:
            ways += [self._settle] * 2
        if self._steps:
            ways += [self._finish_step] * 2
        if not ways:
            return False
        rng.choice(ways)()
        return True

    def _call(self) -> None:
        self._add(self._calls.pop(0))

    def _die(self) -> None:
        """The worker is gone with all that was not committed; another one takes over."""
        self._machine.close()
        self._machine = machine_for(self.code, EXECUTION_ID)
        self._steps.clear()
        self._unrecorded.clear()
        self._machine.replay(self.history)
        self._begin_steps()

    def _begin_steps(self) -> None:
        """Not before the news are delivered: a step's outcome may be among them."""
        if not self._machine.has_pending_events:
            for step in self._machine.unstarted_steps():
                self._steps[step.step_no] = step

    def _add(self, body: e.EventBody) -> e.HistoryEvent:
        self._now += self.rng.choice((0, 0, 1, 100, 1_000))
        event = e.HistoryEvent(len(self.history) + 1, self._now, body)
        self.history.append(event)
        self._machine.feed(event)
        return event

    # --- outcomes ---

    def _settle(self) -> None:
        """One of the tasks, children and timers is over. Timers mostly in their order."""
        rng = self.rng
        key = rng.choice(list(self._open))
        if key[0] == "timer" and rng.random() < 0.8:
            key = min((key for key in self._open if key[0] == "timer"), key=lambda key: self._open[key].fire_at)
        command = self._open.pop(key)
        match command:
            case c.StartTimer():
                self._now = max(self._now, command.fire_at)
                self._add(e.TimerFired(timer_no=command.timer_no))
            case c.ScheduleTask():
                (number,) = msgspec.json.decode(command.input)
                self._add(_task_outcome(command.task_no, number, rng))
            case c.StartChild():
                number = msgspec.json.decode(command.input)
                self._add(_child_outcome(command, number, rng))

    def _finish_step(self) -> None:
        """Often the turn after it is run before anything is committed: then both are there or neither is."""
        first = len(self.history) + 1
        number = self.rng.choice(list(self._steps))
        self._tell_of_turns(but=self._steps[number].up_to)
        self._record_step(number)
        if self.rng.random() < 0.5:
            self._turn(first)
        else:
            self._inside.update(range(first, len(self.history)))

    def _tell_of_turns(self, but: int = 0) -> None:
        """A step carries the number of the turn that has asked for it: that turn, if it is the last, needs no other
        row."""
        for up_to in self._unrecorded:
            if up_to != but or up_to != self._unrecorded[-1]:
                self._add(e.TurnCompleted(up_to=up_to))
        self._unrecorded.clear()

    def _record_step(self, number: int) -> None:
        step = self._steps.pop(number)
        given = step.run[1][0]
        self._now += self.rng.choice((0, 50))
        at = self._now
        fields = {"up_to": step.up_to, "step_no": number, "name": step.name, "started_at": at, "finished_at": at}
        if isinstance(given, int) and given >= 0:
            self._add(e.StepCompleted(**fields, result=_raw(given), line=step.line))
        else:
            self._add(e.StepFailed(**fields, failure=OOPS, attempts=2, line=step.line))

    # --- turns ---

    def _turn(self, first: int | None = None) -> None:
        turn = self._machine.turn()
        for number in turn.dropped_steps:
            self._steps.pop(number, None)
        self._begin_steps()
        interfered = first is None and self._meanwhile()
        if turn.closing and self._unread(turn.up_to) and not isinstance(turn.commands[-1], c.ContinueWorkflow):
            if self._rounds < CLOSE_ROUNDS:
                self._rounds += 1
                self._inside.update(range(first or 0, len(self.history)))
                self._die()
                return
        elif not turn.closing:
            self._rounds = 0
        if turn.commands or not self._steps:
            self._commit(turn, first, releasing=not interfered and not self._steps)
        else:
            self._unrecorded.append(turn.up_to)
            self._inside.update(range(first or len(self.history), len(self.history)))

    def _meanwhile(self) -> bool:
        """What comes between a turn and its commit; whether anything did."""
        rng, before = self.rng, len(self.history)
        while rng.random() < 0.15 and (self._calls or self._open):
            if self._calls and (not self._open or rng.random() < 0.5):
                self._call()
            else:
                self._settle()
        return len(self.history) > before

    def _unread(self, up_to: int) -> bool:
        return any(isinstance(event.body, CALLS) for event in self.history[up_to:])

    def _commit(self, turn: Any, first: int | None, *, releasing: bool) -> None:
        """`first` is the number of the commit's first row, if there is one already."""
        first = first if first is not None else len(self.history) + 1
        self._tell_of_turns()
        answers: list[e.EventBody] = []
        for command in turn.commands:
            if isinstance(command, c.CLOSING):
                for answer in answers:
                    self._add(answer)
                answers = []
            self._add(_row(command, turn.up_to))
            answers += self._effect(command)
        resting = releasing and not self._machine.has_pending_events
        if not self.ended and (resting or not turn.commands):
            waits = self._machine.waits() if resting else ()
            self._add(e.TurnCompleted(up_to=turn.up_to, waiting_for=waits))
        self._inside.update(range(first, len(self.history)))
        for answer in answers:
            self._add(answer)

    def _effect(self, command: Any) -> list[e.EventBody]:
        """What a command changes in the world; what it is answered as soon as the commit is written."""
        match command:
            case c.ScheduleTask():
                self._open["task", command.task_no] = command
            case c.StartTimer():
                self._open["timer", command.timer_no] = command
            case c.CancelTask():
                self._open.pop(("task", command.task_no), None)
            case c.CancelTimer():
                self._open.pop(("timer", command.timer_no), None)
            case c.StartChild():
                if self.rng.random() < 0.1:
                    return [_child_failed(command, "not_started")]
                self._open["child", command.child_no] = command
            case c.SignalExternal():
                return self._deliver(command)
        return []

    def _deliver(self, command: c.SignalExternal) -> list[e.EventBody]:
        number = command.signal_no
        if command.target not in OWN and self.rng.random() < 0.3:
            return [e.ExternalSignalFailed(signal_no=number, failure=OOPS)]
        told = e.ExternalSignalDelivered(signal_no=number, target_execution_id="t", signal_event_sequence=1)
        if command.target not in OWN:
            return [told]
        return [e.SignalReceived(signal_name=command.signal_name, signal_value=command.signal_value), told]


def _task_outcome(task_no: int, number: int, rng: Random) -> e.EventBody:
    if number < 0:
        timeout = rng.choice(("", "", "heartbeat"))
        return e.TaskFailed(task_no=task_no, failure=OOPS, attempt=2, timeout=timeout)
    return e.TaskCompleted(task_no=task_no, result=_raw(number))


def _child_outcome(command: c.StartChild, number: int, rng: Random) -> e.EventBody:
    if number < 0 or rng.random() < 0.1:
        return _child_failed(command, rng.choice(("failed", "cancelled", "terminated", "timed_out")))
    return e.ChildCompleted(
        child_no=command.child_no, child_execution_id=command.child_execution_id, result=_raw(number)
    )


def _child_failed(command: c.StartChild, status: str) -> e.ChildFailed:
    return e.ChildFailed(
        child_no=command.child_no, child_execution_id=command.child_execution_id, status=status, failure=OOPS
    )


def _row(command: Any, up_to: int) -> e.EventBody:
    """A command as the engine records it."""
    fields = msgspec.structs.asdict(command)
    if isinstance(command, c.ContinueWorkflow):
        fields = {"new_execution_id": "next", "kind": command.kind or "k", "version": "1", "input": command.input}
    kind: Any = RECORDED_AS.get(type(command)) or OBSERVED_AS[type(command)]
    return kind(up_to=up_to, **fields)


def _raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


def rebuilt(world: World, *, program: dict[str, Any] | None = None, length: int | None = None) -> Machine:
    """The program as the world's history, or its beginning, leaves it; perhaps another program than the one that made
    it."""
    history = world.history[:length]
    if program is not None:
        started = msgspec.structs.replace(history[0].body, input=_raw(program))
        history = [e.HistoryEvent(1, history[0].at, started), *history[1:]]
    return replayed(world.code, history, EXECUTION_ID)


def recorded(world: World) -> Record:
    """For the checks of all histories."""
    execution_row = Execution(
        id=EXECUTION_ID,
        org="default",
        workflow_id="w",
        kind="k",
        version="1",
        queue="default",
        priority=0,
        state=State.OPEN,
        created_at=START,
        updated_at=START,
    )
    return Record(execution_row=execution_row, history=world.history)
