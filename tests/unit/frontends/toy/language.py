"""A small second front-end: programs are lists of instructions, and their whole state is one plain record.

It stands for interpreters to come: it has tasks, timers, signals and children, several strands side by side, and can
be put away and taken up again between any two turns. A program reads:

    task kind var name      run a task with the value of a variable, keep its result
    sleep seconds           wait on a timer
    signal name var         wait for a signal, keep its value
    child kind var name     run a child with the value of a variable, keep its result
    set var value           value is an integer or a word
    add var other           var += other
    less var limit line     go to a line (from 0) while a variable is less than a number
    fork line               a second strand begins at a line
    end                     this strand is over
    join                    wait until all other strands are over
    return var              the workflow is over
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.errors import QueryFailed, SnapshotMismatch, UnknownQuery
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.ids import child_execution_id
from holdfast.model.payloads import decode, encode, encode_args
from holdfast.model.values import MICRO, Failure, Payload
from holdfast.replay.definition import Definition, ProgramEnvironment
from holdfast.replay.machine import Machine
from holdfast.replay.program import Program

FORMAT = 1


class Strand(msgspec.Struct):
    """One line of control. `waits`: kind and number of a command's outcome, or "signal" and 0. `into`: where the value
    goes that it waits for. `since`: how many waits the program had begun before."""

    line: int = 0
    waits: tuple[str, int] | None = None
    name: str = ""
    into: str = ""
    since: int = 0
    over: bool = False


class State(msgspec.Struct):
    """All there is to know of a program, besides its text."""

    format: int = FORMAT
    variables: dict[str, Any] = msgspec.field(default_factory=dict)
    strands: list[Strand] = msgspec.field(default_factory=list)
    waits: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ToyDefinition(Definition):
    """`every`: how many events there have to be between two snapshots."""

    lines: tuple[tuple[str, ...], ...] = ()
    every: int = 1
    snapshots: bool = field(default=True)

    def make_program(self, machine: Machine, environment: ProgramEnvironment) -> Program:
        return ToyProgram(self, machine, environment)


def toy(kind: str, text: str, *, version: str = "1", every: int = 1) -> ToyDefinition:
    lines = tuple(tuple(line.split()) for line in text.strip().splitlines())
    build = sha256(repr(lines).encode()).hexdigest()[:12]
    return ToyDefinition(kind=kind, version=version, build=build, lines=lines, every=every)


class Waiting:
    """A slot, or a waiter for a signal: it gives what comes to its strand."""

    def __init__(self, program: ToyProgram, strand: Strand) -> None:
        self._program = program
        self._strand = strand
        self.name = strand.name
        self.line = f"toy:{strand.line}"
        self.until_at: int | None = None

    def settle(self, body: e.EventBody) -> None:
        failure = getattr(body, "failure", None)
        if failure is not None:
            self._program.failure = failure
        else:
            self.settle_signal(getattr(body, "result", None))

    def settle_signal(self, value: Payload | None) -> None:
        if self._strand.into and value is not None:
            self._program.state.variables[self._strand.into] = decode(value, field="value")
        self._strand.waits = None


class ToyProgram(Program):
    def __init__(self, definition: ToyDefinition, machine: Machine, environment: ProgramEnvironment) -> None:
        self.state = State()
        self.failure: Failure | None = None
        self._definition = definition
        self._machine = machine
        self._environment = environment
        self._closing: c.Command | None = None

    # --- what happens to it ---

    def start(self, event: e.WorkflowStarted) -> None:
        self.state.variables["input"] = decode(event.input, field="input")
        self.state.strands.append(Strand())

    def cancel(self, reason: str) -> None:
        self._closing = c.CancelWorkflow(reason=reason)

    def move(self, event: e.WorkflowReset) -> None:
        self.state.variables["moved"] = self.state.variables.get("moved", 0) + 1

    def update(self, request: e.UpdateRequested) -> None:
        self._machine.reject_update(request.update_id, Failure(type="UnknownUpdate", message=request.update_name))

    def query(self, name: str, input: Payload, has_input: bool) -> Payload:
        if name == "state":
            return encode(self.state, field="answer")
        if name == "fail":
            raise QueryFailed("as asked")
        raise UnknownQuery(f"a toy has no query {name!r}")

    def blocked_on(self) -> list[str]:
        return [f"toy:{strand.line}" for strand in self.state.strands if not strand.over]

    def close(self) -> None:
        del self._machine

    # --- its state ---

    def snapshot(self) -> bytes | None:
        if self._machine.up_to - self._machine.stored_up_to < self._definition.every:
            return None
        return msgspec.json.encode(self.state, order="deterministic")

    def restore(self, state: bytes, build: str) -> None:
        if build != self._definition.build:
            raise SnapshotMismatch(f"build {build} has made it, and this is build {self._definition.build}")
        self.state = msgspec.json.decode(state, type=State)
        if self.state.format != FORMAT:
            raise SnapshotMismatch(f"it has format {self.state.format}")
        # Slots backwards, to show that their order does not matter. Who waits first for a signal gets the first.
        for strand in reversed(self.state.strands):
            if strand.waits is not None and strand.waits[0] not in {"join", "signal"}:
                self._machine.hear(*strand.waits, Waiting(self, strand))
        for strand in sorted(self.state.strands, key=lambda strand: strand.since):
            if strand.waits is not None and strand.waits[0] == "signal":
                self._machine.wait_signal(strand.name, Waiting(self, strand))

    # --- running ---

    def run(self) -> c.Command | None:
        moved = True
        while moved and self._closing is None and self.failure is None:
            moved = False
            for strand in list(self.state.strands):
                moved = self._advance(strand) or moved
        if self.failure is not None:
            return c.FailWorkflow(failure=self.failure)
        return self._closing

    def _advance(self, strand: Strand) -> bool:
        """Let a strand run until it waits; whether it has."""
        began = False
        while not strand.over and self._closing is None and self._goes_on(strand):
            began = True
            word, *rest = self._definition.lines[strand.line]
            strand.line += 1
            getattr(self, f"_do_{word}")(strand, *rest)
        return began

    def _goes_on(self, strand: Strand) -> bool:
        if strand.waits is not None and strand.waits[0] == "join":
            if any(not other.over for other in self.state.strands if other is not strand):
                return False
            strand.waits = None
        return strand.waits is None

    def _begin(self, strand: Strand, kind: str, name: str, into: str) -> Waiting:
        strand.waits, strand.name, strand.into, strand.since = (kind, 0), name, into, self.state.waits
        self.state.waits += 1
        return Waiting(self, strand)

    def _do_task(self, strand: Strand, kind: str, argument: str, into: str) -> None:
        slot = self._begin(strand, "task", kind, into)
        args = encode_args((self.state.variables[argument],))
        number = self._machine.schedule_task(
            lambda number: c.ScheduleTask(task_no=number, kind=kind, input=args, line=slot.line), slot
        )
        strand.waits = ("task", number)

    def _do_sleep(self, strand: Strand, seconds: str) -> None:
        slot = self._begin(strand, "timer", seconds, "")
        fire_at = self._machine.now + round(float(seconds) * MICRO)
        strand.waits = ("timer", self._machine.start_timer(fire_at, slot.line, slot))

    def _do_signal(self, strand: Strand, name: str, into: str) -> None:
        value = self._machine.take_signal(name)
        if value is not None:
            self.state.variables[into] = decode(value, field="value")
            return
        self._machine.wait_signal(name, self._begin(strand, "signal", name, into))

    def _do_child(self, strand: Strand, kind: str, argument: str, into: str) -> None:
        slot = self._begin(strand, "child", kind, into)
        former = self._machine.former
        own = former[0] if former else self._environment.execution_id
        started = self._machine.start_child(
            lambda number: c.StartChild(
                child_no=number,
                child_execution_id=child_execution_id(own, number, self._machine.now),
                kind=kind,
                input=encode(self.state.variables[argument], field="input"),
                line=slot.line,
            ),
            slot,
        )
        strand.waits = ("child", started.child_no)

    def _do_set(self, strand: Strand, name: str, value: str) -> None:
        self.state.variables[name] = int(value) if value.lstrip("-").isdigit() else value

    def _do_add(self, strand: Strand, name: str, other: str) -> None:
        self.state.variables[name] += self.state.variables[other]

    def _do_less(self, strand: Strand, name: str, limit: str, line: str) -> None:
        if self.state.variables[name] < int(limit):
            strand.line = int(line)

    def _do_fork(self, strand: Strand, line: str) -> None:
        self.state.strands.append(Strand(line=int(line)))

    def _do_end(self, strand: Strand) -> None:
        strand.over = True

    def _do_join(self, strand: Strand) -> None:
        strand.waits = ("join", 0)

    def _do_return(self, strand: Strand, name: str) -> None:
        self._closing = c.CompleteWorkflow(result=encode(self.state.variables[name], field="result"))
