"""A front-end whose programs can be put away, on a real engine: what a cold turn reads, and that nothing changes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec import structs

from holdfast import Engine, EngineConfig, StoreConfig, WorkerConfig, WorkflowContext, WorkflowHandle, workflow
from holdfast.engine.rules.rebuilding import points
from holdfast.errors import WorkflowCancelled, WorkflowFailed, WorkflowTerminated, WorkflowTimedOut
from holdfast.model.events import HistoryEvent
from holdfast.model.snapshots import Snapshot
from holdfast.replay.machine import Machine
from holdfast.replay.views import as_of
from holdfast.store import reads
from holdfast.testing import replay
from holdfast.testing.histories import program_maker
from holdfast.worker import rebuilding
from tests.conftest import QUICK, SECRET, OpenEngine
from tests.unit.engine.records import check_all, waiting, waiting_for
from tests.unit.frontends.toy.language import ToyDefinition, toy
from tests.unit.frontends.toy.programs import BUSY, COUNT, HALVES, double, refuses

COLD = EngineConfig(
    store=StoreConfig(synchronous="normal"),
    worker=WorkerConfig(shutdown_grace_s=0.2, cached_executions=0),
    secret_key=SECRET,
)
"""No program is kept: every turn after the first is a cold one."""


class Reads:
    """What an engine's workers read from the store of the histories of programs."""

    def __init__(self, engine: Engine) -> None:
        self.events: list[HistoryEvent] = []
        self.snapshots = 0
        store: Any = engine._local.store
        read = store.read

        async def counted(query: Any) -> Any:
            found = await read(query)
            if isinstance(query, reads.History):
                self.events += found
            self.snapshots += isinstance(query, reads.Row) and query.record is Snapshot
            return found

        store.read = counted


async def snapshot_of(engine: Engine, handle: WorkflowHandle) -> Snapshot | None:
    return await engine._local.store.read(reads.Row(Snapshot, handle.id, "default"))


def from_event_1(definition: ToyDefinition, events: list[HistoryEvent], execution_id: str) -> Machine:
    machine = Machine(program_maker(definition, "default", execution_id))
    machine.replay(events)
    return machine


async def check_snapshot(engine: Engine, handle: WorkflowHandle, definition: ToyDefinition) -> None:
    """What is stored is, byte for byte, what running from event 1 gives."""
    stored = await snapshot_of(engine, handle)
    assert stored is not None
    history = await handle.history()
    recorded = [event for event in history if getattr(event.body, "up_to", 0) <= stored.up_to]
    assert stored.state == from_event_1(definition, recorded, handle.id).snapshot()


async def run_busy(client: Any) -> tuple[WorkflowHandle, int]:
    handle = await client.start_workflow(BUSY, 10, workflow_id="w")
    for name, value in (("extra", 3), ("first", 2), ("extra", 3)):
        await handle.signal(name, value)
    await waiting_for(handle, "signal")
    await handle.signal("second", 4)
    return handle, await handle.result(timeout=20)


# --- a definition like any other --------------------------------------------------------------------------------------


async def test_it_runs_beside_python_workflows(engine: OpenEngine):
    """Tasks, timers, signals and children; started by its definition, by its kind and by a Python workflow."""

    @workflow
    async def asks(ctx: WorkflowContext, number: int) -> int:
        return await ctx.child(HALVES, number) + await ctx.child("halves", number)

    running = await engine(workflows=[BUSY, HALVES, asks], tasks=[double])
    _, result = await run_busy(running.client)
    assert result == 10 * 2 + 40 + 2 + 3
    assert await (await running.client.start_workflow("halves", 4)).result(timeout=20) == 8
    assert await (await running.client.start_workflow(asks, 4)).result(timeout=20) == 16
    await check_all(running)


async def test_its_history_can_be_replayed_by_the_testing_kit(engine: OpenEngine):
    """`holdfast.testing.replay` takes a definition as it takes a function."""
    running = await engine(workflows=[BUSY, HALVES], tasks=[double])
    handle, _ = await run_busy(running.client)
    assert replay(BUSY, await handle.history(), execution_id=handle.id).ended


async def test_how_it_ends_is_told_as_ever(engine: OpenEngine):
    """Cancelled, terminated, timed out, failed; its snapshot is gone with each."""
    sad = toy("sad", "signal go word\ntask refuses input answer\nreturn answer")
    running = await engine(workflows=[COUNT, sad], tasks=[refuses])
    client = running.client
    start = [await client.start_workflow(COUNT) for _ in range(2)]
    start += [await client.start_workflow(COUNT, execution_timeout=0.2)]
    for handle in start[:2]:
        await waiting(handle)
        assert await snapshot_of(running, handle) is not None
    await start[0].cancel("enough")
    await start[1].terminate("now")
    start.append(await client.start_workflow(sad, 1))
    await waiting(start[3])
    await start[3].signal("go", 1)
    ends = (WorkflowCancelled, WorkflowTerminated, WorkflowTimedOut, WorkflowFailed)
    for handle, error in zip(start, ends, strict=True):
        with pytest.raises(error):
            await handle.result(timeout=20)
        assert await snapshot_of(running, handle) is None
    await check_all(running)


async def test_a_python_workflow_costs_no_look_for_a_snapshot(engine: OpenEngine):
    """Not even when all its turns are cold."""

    @workflow
    async def waits(ctx: WorkflowContext) -> list[str]:
        return [await ctx.wait_for_signal("go", str) for _ in range(3)]

    running = await engine(workflows=[waits], config=COLD)
    reads = Reads(running)
    handle = await running.client.start_workflow(waits)
    for word in "abc":
        await waiting(handle)
        await handle.signal("go", word)
    assert await handle.result(timeout=20) == ["a", "b", "c"]
    assert (0, True) == (reads.snapshots, bool(reads.events))


# --- cold turns -------------------------------------------------------------------------------------------------------


async def count_up(handle: WorkflowHandle, times: int) -> None:
    for _ in range(times):
        await handle.signal("next", 1)


async def test_a_cold_turn_reads_its_snapshot_and_nothing_older(engine: OpenEngine):
    """A history of thousands of events, taken up by another engine: a handful of them is read."""
    first = await engine(workflows=[COUNT])
    handle = await first.client.start_workflow(COUNT)
    await count_up(handle, 2_000)
    await waiting(handle)
    await check_snapshot(first, handle, COUNT)
    length = len(await handle.history())
    assert length > 2_000
    await first.shutdown()

    second = await engine(workflows=[COUNT])
    reads = Reads(second)
    await second.client.workflow(handle.id).signal("next", 1_000_000)
    assert await second.client.workflow(handle.id).result(timeout=20) == 1_002_000
    assert 1 == reads.snapshots
    assert len(reads.events) < 10
    assert min(event.seq for event in reads.events) > length - 10


@pytest.mark.parametrize("every", [1, 7])
async def test_with_no_program_kept_all_turns_begin_with_a_snapshot(engine: OpenEngine, every: int):
    """The newest: what it has not seen is replayed. The result is the same."""
    definition = toy("count", "\n".join(" ".join(line) for line in COUNT.lines), every=every)
    running = await engine(workflows=[definition], config=COLD)
    reads = Reads(running)
    handle = await running.client.start_workflow(definition)
    for _ in range(30):
        await handle.signal("next", 1)
        await waiting(handle)
    length = len(await handle.history())
    await check_snapshot(running, handle, definition)
    await handle.signal("next", 1_000_000)
    assert await handle.result(timeout=20) == 1_000_030
    # From event 1 each time it would be about length * 30 / 2.
    assert len(reads.events) < 31 * (every + 6) < length * 31 / 3
    await check_all(running)


async def test_a_busy_program_goes_on_from_every_turn(engine: OpenEngine):
    """Evicted after each turn, with everything it can wait for open."""
    running = await engine(workflows=[BUSY, HALVES], tasks=[double], config=COLD)
    kept = await engine(workflows=[], tasks=[])
    for number in range(5):
        handle = await running.client.start_workflow(BUSY, number)
        for name, value in (("extra", 5), ("extra", 5), ("first", 0), ("second", 0)):
            await handle.signal(name, value)
        assert await handle.result(timeout=20) == number * 6 + 7
    await check_all(kept)


# --- reset, fork, queries ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [QUICK, COLD], ids=["kept", "cold"])
async def test_reset_and_fork_rebuild_from_event_1(engine: OpenEngine, config: EngineConfig):
    """At every event where a turn ends; then the new execution has a snapshot of its own."""
    running = await engine(workflows=[BUSY, HALVES], tasks=[double], config=config)
    handle, result = await run_busy(running.client)
    for seq in points(await handle.history()):
        for again in (
            await handle.fork(at_event=seq, reapply_signals=True),
            await handle.reset(to_event=seq, reapply_signals=True),
        ):
            assert await again.result(timeout=20) == result
            assert await snapshot_of(running, again) is None
    await check_all(running)


async def test_the_snapshot_of_a_reset_execution_is_its_own(engine: OpenEngine):
    """Made from a rebuilt program, it is the same as any other; the old execution's is gone."""
    running = await engine(workflows=[COUNT], config=COLD)
    old = await running.client.start_workflow(COUNT, workflow_id="w")
    for _ in range(10):
        await old.signal("next", 1)
        await waiting(old)
    seq = points(await old.history())[4]
    new = await old.reset(to_event=seq)
    await waiting(new)
    await check_snapshot(running, new, COUNT)
    assert await snapshot_of(running, old) is None
    reads = Reads(running)
    await new.signal("next", 1_000_000)
    assert await new.result(timeout=20) > 1_000_000
    assert len(reads.events) < 10


async def test_a_query_of_what_is_reads_the_snapshot(engine: OpenEngine):
    """By a worker that does not have the program."""
    running = await engine(workflows=[COUNT], config=COLD)
    handle = await running.client.start_workflow(COUNT)
    await count_up(handle, 200)
    await waiting(handle)
    reads = Reads(running)
    state = await handle.query("state")
    assert state["variables"]["total"] == 200
    assert len(reads.events) < 10


async def test_a_query_of_what_was_is_answered_from_event_1(engine: OpenEngine):
    """As of every event; a later snapshot changes nothing."""
    running = await engine(workflows=[BUSY, HALVES], tasks=[double], config=COLD)
    handle = await running.client.start_workflow(BUSY, 10)
    for name in ("extra", "first"):
        await handle.signal(name, 1)
    await waiting_for(handle, "signal")
    history = await handle.history()
    for seq in range(1, len(history) + 1):
        machine = from_event_1(BUSY, as_of(history, seq), handle.id)
        expected: Any = machine.program
        found = await handle.query("state", as_of=seq)
        assert found["variables"] == expected.state.variables, seq
        assert [strand["line"] for strand in found["strands"]] == [strand.line for strand in expected.state.strands]


# --- what does not fit ------------------------------------------------------------------------------------------------


def mismatches(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "is not used" in record.getMessage()]


def spoil(engine: Engine, **fields: Any) -> None:
    """Let an engine find other snapshots than were stored."""
    store: Any = engine._local.store
    read = store.read

    async def spoiled(query: Any) -> Any:
        found = await read(query)
        is_snapshot = isinstance(query, reads.Row) and query.record is Snapshot
        return structs.replace(found, **fields) if is_snapshot and found is not None else found

    store.read = spoiled


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"state": b"garbage"}, "damaged"),
        ({"state": b""}, "damaged"),
        ({"build": "another"}, "build another has made it"),
        ({"version": "9"}, "version '9' has made it"),
        ({"up_to": 1}, "it was made after event"),
    ],
    ids=["garbage", "empty", "build", "version", "up_to"],
)
async def test_a_snapshot_that_does_not_fit_is_told_and_not_used(
    engine: OpenEngine, caplog: pytest.LogCaptureFixture, fields: dict[str, Any], reason: str
):
    """The program is rebuilt from event 1, for a turn and for a query; and stores a sound one again."""
    running = await engine(workflows=[COUNT], config=COLD)
    handle = await running.client.start_workflow(COUNT)
    for _ in range(5):
        await handle.signal("next", 1)
        await waiting(handle)
    spoil(running, **fields)
    assert (await handle.query("state"))["variables"]["total"] == 5
    await handle.signal("next", 1)
    await waiting(handle)
    assert [reason in text for text in mismatches(caplog)] == [True, True]
    assert handle.id in mismatches(caplog)[0]
    await handle.signal("next", 1_000_000)
    assert await handle.result(timeout=20) == 1_000_006
    await check_all(running)


async def test_changed_code_rebuilds_what_old_code_has_put_away(engine: OpenEngine, caplog: pytest.LogCaptureFixture):
    """Another build of the same version: once, then it has its own snapshots."""
    first = await engine(workflows=[COUNT])
    handle = await first.client.start_workflow(COUNT)
    await count_up(handle, 20)
    await waiting(handle)
    await first.shutdown()

    text = "\n".join(" ".join(line) for line in COUNT.lines)
    changed = toy("count", text + "\nend")
    second = await engine(workflows=[changed], config=COLD)
    again = second.client.workflow(handle.id)
    for _ in range(3):
        await again.signal("next", 1)
        await waiting(again)
    assert 1 == len(mismatches(caplog))
    stored = await snapshot_of(second, again)
    assert stored is not None
    assert changed.build == stored.build


async def test_two_versions_side_by_side_have_snapshots_of_their_own(engine: OpenEngine):
    """In one worker, and each taken up by a worker that knows both."""
    later = toy("count", "set total 0\nsignal next value\nadd total value\nreturn value", version="2")
    running = await engine(workflows=[COUNT, later], config=COLD)
    old = await running.client.start_workflow(COUNT)
    new = await running.client.start_workflow(later)
    await old.signal("next", 1)
    for handle in (old, new):
        await waiting(handle)
    found = [await snapshot_of(running, handle) for handle in (old, new)]
    assert ["1", "2"] == [snapshot.version for snapshot in found if snapshot is not None]
    await old.signal("next", 1_000_000)
    await new.signal("next", 1)
    assert [1_000_001, 1] == [await old.result(timeout=20), await new.result(timeout=20)]


async def test_a_turn_without_a_snapshot_leaves_the_older_one_in_force(engine: OpenEngine):
    """As a worker completes it that knows no snapshots: the next one that does replays what came after."""
    first = await engine(workflows=[COUNT])
    handle = await first.client.start_workflow(COUNT)
    await count_up(handle, 5)
    await waiting(handle)
    before = await snapshot_of(first, handle)
    await first.shutdown()

    older = dataclasses.replace(COUNT, snapshots=False)
    second = await engine(workflows=[older])
    await count_up(second.client.workflow(handle.id), 3)
    await waiting(second.client.workflow(handle.id))
    assert before == await snapshot_of(second, handle)
    await second.shutdown()

    third = await engine(workflows=[COUNT])
    reads = Reads(third)
    again = third.client.workflow(handle.id)
    await again.signal("next", 1_000_000)
    assert await again.result(timeout=20) == 1_000_008
    assert before is not None
    assert min(event.seq for event in reads.events) == before.up_to + 1


async def test_a_snapshot_that_is_too_large_is_left_out(
    engine: OpenEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """The execution goes on; the log says why it will be slower."""
    monkeypatch.setattr(rebuilding, "SNAPSHOT_BYTES", 100)
    running = await engine(workflows=[COUNT], config=COLD)
    handle = await running.client.start_workflow(COUNT)
    await handle.signal("next", 1_000_000)
    assert await handle.result(timeout=20) == 1_000_000
    assert any("100 are the most" in record.getMessage() for record in caplog.records)
