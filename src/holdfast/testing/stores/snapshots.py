"""Snapshots of programs: one for each execution, the newest, gone with it."""

from __future__ import annotations

from typing import Any

from holdfast.model.snapshots import Snapshot
from holdfast.store import reads
from holdfast.testing.stores.bench import Bench, OpenStore
from holdfast.testing.stores.records import ORG, OTHER_ORG, a_closed_execution, an_execution, an_id


def a_snapshot(number: int = 1, **fields: Any) -> Snapshot:
    defaults: dict[str, Any] = {"org": ORG, "up_to": 2, "version": "1", "build": "b", "state": b"\x00\xff'\\\"{}\x00"}
    return Snapshot(execution_id=an_id(number), **(defaults | fields))


async def write_all(bench: Bench, *snapshots: Snapshot) -> None:
    await bench.put(*snapshots)


class Snapshots:
    async def test_a_snapshot_is_read_as_it_was_written(self, open_store: OpenStore) -> None:
        """Byte for byte; for its own org, and only if there is one."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[an_execution(1), an_execution(2), an_execution(3)])
        first, second = a_snapshot(1, build="größer"), a_snapshot(2, state=bytes(range(256)) * 5_000)
        await write_all(bench, first, second)

        assert await bench.store.read(reads.Row(Snapshot, an_id(1), ORG)) == first
        assert await bench.store.read(reads.Row(Snapshot, an_id(2), ORG)) == second
        assert await bench.store.read(reads.Row(Snapshot, an_id(3), ORG)) is None
        assert await bench.store.read(reads.Row(Snapshot, an_id(1), OTHER_ORG)) is None

    async def test_a_new_snapshot_takes_the_place_of_the_old_one(self, open_store: OpenStore) -> None:
        """Also of one with more bytes; those of others stay."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[an_execution(1), an_execution(2)])
        await write_all(bench, a_snapshot(1), a_snapshot(2))
        newer = a_snapshot(1, up_to=7, version="2", build="c", state=b"x")
        await write_all(bench, newer)

        assert await bench.store.read(reads.Row(Snapshot, an_id(1), ORG)) == newer
        assert await bench.store.read(reads.Row(Snapshot, an_id(2), ORG)) == a_snapshot(2)

    async def test_a_dropped_snapshot_is_gone(self, open_store: OpenStore) -> None:
        """One that was never there may be dropped, and others are written in the same batch."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[an_execution(1), an_execution(2)])
        await write_all(bench, a_snapshot(1))
        await bench.write(rows={Snapshot: {an_id(1): None, an_id(9): None, an_id(2): a_snapshot(2)}})

        assert await bench.store.read(reads.Row(Snapshot, an_id(1), ORG)) is None
        assert await bench.store.read(reads.Row(Snapshot, an_id(2), ORG)) == a_snapshot(2)

    async def test_a_snapshot_goes_with_its_execution(self, open_store: OpenStore) -> None:
        """When that is removed, alone or with its org: the same id has none later."""
        bench = await Bench.opened(open_store)
        closed, other = a_closed_execution(1), an_execution(2, org=OTHER_ORG)
        await bench.write(new_executions=[closed, other])
        await write_all(bench, a_snapshot(1), a_snapshot(2, org=OTHER_ORG))
        await bench.write(removed={closed.id: closed}, purged_orgs={OTHER_ORG: 100})
        await bench.write(new_executions=[an_execution(1), an_execution(2, org=OTHER_ORG)])

        assert await bench.store.read(reads.Row(Snapshot, an_id(1), ORG)) is None
        assert await bench.store.read(reads.Row(Snapshot, an_id(2), OTHER_ORG)) is None
