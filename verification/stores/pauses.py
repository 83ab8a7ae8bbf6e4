"""What is paused: written whole, listed for all orgs, gone with its worker."""

from __future__ import annotations

from typing import Any

from holdfast.model.executions import WorkerRow
from holdfast.model.pauses import Pausable, Pause, PauseMode
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.records import ORG, OTHER_ORG


def a_pause(name: str = "default", org: str = ORG, **fields: Any) -> Pause:
    defaults: dict[str, Any] = {"what": Pausable.QUEUE, "since_at": START}
    return Pause(org=org, name=name, **(defaults | fields))


def a_stopped_worker(name: str, **fields: Any) -> Pause:
    return a_pause(name, what=Pausable.WORKER, **fields)


async def write_all(bench: Bench, *pauses: Pause) -> None:
    await bench.write(pauses={pause.key: pause for pause in pauses})


class Pauses:
    async def test_a_pause_is_loaded_as_it_was_written(self, open_store: OpenStore) -> None:
        """Every field of it; what is not there is not in the answer."""
        bench = await Bench.opened(open_store)
        drained = a_stopped_worker("w1", mode=PauseMode.DRAINING, reason="größer")
        await write_all(bench, drained, a_pause())

        nobody = (OTHER_ORG, Pausable.QUEUE, "default")
        loaded = await bench.load(orgs={ORG}, pauses={drained.key, nobody})
        assert loaded.pauses == {drained.key: drained}

    async def test_a_pause_is_changed_whole(self, open_store: OpenStore) -> None:
        """One that was paused may be drained."""
        bench = await Bench.opened(open_store)
        await write_all(bench, a_stopped_worker("w1"))
        drained = a_stopped_worker("w1", mode=PauseMode.DRAINING, since_at=START + 1, reason="why")
        await write_all(bench, drained)
        assert await bench.store.pauses() == [drained]

    async def test_all_pauses_are_listed_in_order(self, open_store: OpenStore) -> None:
        """A queue and a worker of the same name are two; so are those of two orgs."""
        bench = await Bench.opened(open_store)
        expected = [a_pause("a"), a_pause("b"), a_stopped_worker("a"), a_pause("a", OTHER_ORG)]
        expected.sort(key=lambda pause: pause.key)
        await write_all(bench, *reversed(expected))
        assert await bench.store.pauses() == expected

    async def test_what_continues_is_paused_no_more(self, open_store: OpenStore) -> None:
        """And nothing else; a key that is not paused may be named."""
        bench = await Bench.opened(open_store)
        await write_all(bench, a_pause("a"), a_pause("b"), a_pause("a", OTHER_ORG))
        await bench.write(deleted_pauses=[a_pause("a").key, a_pause("c").key])
        assert await bench.store.pauses() == sorted([a_pause("b"), a_pause("a", OTHER_ORG)], key=lambda p: p.key)

    async def test_the_pause_of_a_worker_ends_with_it(self, open_store: OpenStore) -> None:
        """A queue that happens to have its name stays paused; so does one that takes its place in the same batch."""
        bench = await Bench.opened(open_store)
        row = WorkerRow(id="w1", org=ORG, host="h", pid=1, started_at=START, lease_until_at=START)
        await bench.write(workers={"w1": row}, pauses={p.key: p for p in (a_stopped_worker("w1"), a_pause("w1"))})
        heir = a_stopped_worker("w2")
        await bench.write(deleted_workers=["w1"], pauses={heir.key: heir})
        assert await bench.store.pauses() == [a_pause("w1"), heir]
