"""Snapshots without an engine: at every cut, a program restored from any snapshot is the one that its history gives."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from msgspec import Raw, structs

from holdfast.errors import SnapshotMismatch
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.snapshots import Snapshot
from holdfast.replay.journal import RECORDED_AS
from holdfast.replay.machine import Machine
from holdfast.replay.snapshots import sealed
from holdfast.replay.views import as_of
from tests.replay.recording import machine_for
from tests.unit.frontends.toy.language import ToyDefinition, toy
from tests.unit.frontends.toy.programs import BUSY, COUNT

OUTCOMES: dict[type[Any], Any] = {
    e.TaskScheduled: lambda body: e.TaskCompleted(task_no=body.task_no, result=Raw(b"7")),
    e.TimerStarted: lambda body: e.TimerFired(timer_no=body.timer_no),
    e.ChildStarted: lambda body: e.ChildCompleted(
        child_no=body.child_no, child_execution_id=body.child_execution_id, result=Raw(b"9")
    ),
}


class World:
    """One execution, its history as an engine would have written it, and a snapshot after every turn. Some events come
    while a turn runs: their numbers are between the last it has seen and its own rows."""

    def __init__(self, definition: ToyDefinition, seed: int) -> None:
        self.definition = definition
        self.luck = random.Random(seed)
        self.machine = machine_for(definition)
        self.history: list[e.HistoryEvent] = []
        self.snapshots: list[tuple[int, Snapshot]] = []
        """With the length of the history when it was made."""
        self._fed = 0
        self._open: list[e.EventBody] = []

    def run(self, turns: int = 40) -> None:
        self._come(e.WorkflowStarted(kind="toy", workflow_id="w", input=Raw(b"3")))
        while not self.machine.ended and turns:
            turns -= 1
            for event in self.history[self._fed :]:
                self.machine.feed(event)
            if not self.machine.has_news:
                self._happen()
                continue
            self._turn()

    def _turn(self) -> None:
        seen = len(self.history)
        done = self.machine.turn()
        for _ in range(self.luck.randrange(3)):
            self._happen()
        # Its own rows are no news to it, those between are.
        self._fed = seen
        for event in self.history[seen:]:
            self.machine.feed(event)
        for command in done.commands:
            fields = structs.asdict(command)
            self._come(RECORDED_AS[type(command)](up_to=done.up_to, **fields))
        if not self.machine.ended:
            self._come(e.TurnCompleted(up_to=done.up_to))
        self._fed = len(self.history)
        self._store(done.up_to)

    def _store(self, up_to: int) -> None:
        state = self.machine.snapshot()
        if state is not None:
            made = Snapshot(execution_id="x", up_to=up_to, version="1", build=self.definition.build, state=state)
            self.snapshots.append((len(self.history), made))

    def _happen(self) -> None:
        """Something that the program asked for is done, or somebody signals."""
        if self._open and self.luck.random() < 0.6:
            self._come(self._open.pop(self.luck.randrange(len(self._open))))
        else:
            name = self.luck.choice(["first", "second", "extra", "next", "unread"])
            self._come(e.SignalReceived(signal_name=name, signal_value=Raw(b"%d" % self.luck.randrange(9))))

    def _come(self, body: Any) -> None:
        seq = len(self.history) + 1
        self.history.append(e.HistoryEvent(seq, seq * 1_000, body))
        if type(body) in OUTCOMES:
            self._open.append(OUTCOMES[type(body)](body))

    def after(self, snapshot: Snapshot, length: int) -> list[e.HistoryEvent]:
        return self.history[snapshot.up_to : length]


def restored(world: World, snapshot: Snapshot, length: int) -> Machine:
    machine = machine_for(world.definition)
    machine.restore(snapshot, world.after(snapshot, length))
    return machine


def next_commands(machine: Machine) -> list[c.Command]:
    return machine.turn().commands if machine.has_news else []


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("definition", [BUSY, COUNT], ids=["busy", "count"])
def test_restored_from_any_snapshot_at_any_later_cut_it_is_the_same(definition: ToyDefinition, seed: int):
    """Byte for byte what running from event 1 gives; it waits for the same and makes the same next move."""
    world = World(definition, seed)
    world.run()
    assert len(world.snapshots) > 3
    for number, (length, made) in enumerate(world.snapshots):
        whole = machine_for(definition)
        whole.replay(world.history[:length])
        assert whole.snapshot() == made.state
        for _, earlier in world.snapshots[: number + 1]:
            machine = restored(world, earlier, length)
            # A snapshot that holds up to the same event gives no new one: nothing has happened since.
            machine.stored_up_to = 0
            assert made.state == machine.snapshot()
            assert (whole.waits(), whole.unread(), whole.now) == (machine.waits(), machine.unread(), machine.now)
            again = machine_for(definition)
            again.replay(world.history[:length])
            assert next_commands(again) == next_commands(machine)


@pytest.mark.parametrize("seed", range(10))
def test_the_end_of_a_history_is_reached_from_every_snapshot(seed: int):
    """Also with turns recorded that the snapshot has not seen."""
    world = World(BUSY, seed)
    world.run(400)
    assert world.machine.ended
    for _, made in world.snapshots:
        assert restored(world, made, len(world.history)).ended


def test_what_was_at_an_event_is_found_from_the_first_event():
    """A snapshot made later has nothing to do with it."""
    world = World(BUSY, 1)
    world.run()
    states = {made.up_to: made.state for _, made in world.snapshots}
    for length, _ in world.snapshots:
        machine = machine_for(BUSY)
        machine.replay(as_of(world.history, length))
        assert states[machine.up_to] == machine.snapshot()


def test_the_input_is_not_repeated_in_every_snapshot():
    """It may be large, and the program has what it needs of it."""
    machine = machine_for(COUNT)
    machine.feed(e.HistoryEvent(1, 1, e.WorkflowStarted(kind="k", workflow_id="w", input=Raw(b'"%b"' % (b"x" * 999)))))
    machine.turn()
    program = machine.program
    program.state.variables.pop("input")  # type: ignore[attr-defined]  # a toy
    snapshot = machine.snapshot()
    assert snapshot is not None
    assert b"xxx" not in snapshot


# --- what does not fit ------------------------------------------------------------------------------------------------


@pytest.fixture
def world() -> World:
    made = World(BUSY, 5)
    made.run(12)
    return made


def packed(parts: list[Any]) -> bytes:
    return sealed(msgspec.msgpack.encode(parts))


def refusal(world: World, snapshot: Snapshot, events: list[e.HistoryEvent] | None = None) -> str:
    machine = machine_for(world.definition)
    with pytest.raises(SnapshotMismatch) as refused:
        machine.restore(snapshot, world.after(snapshot, len(world.history)) if events is None else events)
    return str(refused.value)


def test_any_cut_off_or_changed_byte_is_refused(world: World):
    """Never another error, and never another program."""
    _, made = world.snapshots[-1]
    luck = random.Random(0)
    for place in range(len(made.state)):
        assert refusal(world, structs.replace(made, state=made.state[:place]))
        spoiled = bytearray(made.state)
        spoiled[place] ^= 1 << luck.randrange(8)
        assert "damaged" in refusal(world, structs.replace(made, state=bytes(spoiled)))


def test_another_format_is_refused(world: World):
    """The machine's own, and the program's."""
    _, made = world.snapshots[-1]
    parts: list[Any] = msgspec.msgpack.decode(made.state[4:])
    parts[0] = 2
    newer = packed(parts)
    assert "format 2" in refusal(world, structs.replace(made, state=newer))
    parts[0], program = 1, msgspec.json.decode(parts[-1])
    parts[-1] = msgspec.json.encode({**program, "format": 9})
    assert "format 9" in refusal(world, structs.replace(made, state=packed(parts)))


def test_what_another_build_has_made_is_refused(world: World):
    """The program decides; this one knows its own only."""
    _, made = world.snapshots[-1]
    assert "build other" in refusal(world, structs.replace(made, build="other"))


def test_a_turn_that_is_not_recorded_is_refused(world: World):
    """A database that has lost the end of a history may still have the snapshot."""
    _, made = world.snapshots[-1]
    assert "is not recorded" in refusal(world, made, [])


def test_a_program_that_forgets_a_wait_is_refused(world: World):
    """Nothing would ever wake it."""
    _, made = next(found for found in world.snapshots if found[1].state.count(b'"waits":["'))
    parts: list[Any] = msgspec.msgpack.decode(made.state[4:])
    program = msgspec.json.decode(parts[-1])
    for strand in program["strands"]:
        strand["waits"] = None
    parts[-1] = msgspec.json.encode(program)
    assert "waits for" in refusal(world, structs.replace(made, state=packed(parts)))


def test_a_program_may_give_a_snapshot_now_and_then():
    """It is told how far the stored one reaches."""
    rare = toy("rare", "\n".join(" ".join(line) for line in COUNT.lines), every=10)
    world = World(rare, 3)
    machine = world.machine

    def store(up_to: int) -> None:
        state = machine.snapshot()
        if state is not None:
            made = Snapshot(execution_id="x", up_to=up_to, version="1", build=rare.build, state=state)
            machine.note_stored(made)
            world.snapshots.append((len(world.history), made))

    world._store = store  # type: ignore[method-assign]
    world.run()
    reached = [made.up_to for _, made in world.snapshots]
    assert len(reached) > 2
    assert all(later - earlier >= 10 for earlier, later in zip([0, *reached], reached, strict=False))
