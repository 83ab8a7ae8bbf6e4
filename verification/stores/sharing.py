"""Two stores on one database: each sees what the other has committed, and says so."""

from __future__ import annotations

import asyncio
from unittest import SkipTest

from holdfast.model.executions import Ready
from holdfast.store.protocol import Changes, Loaded, LoadPlan
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.records import ORG, a_full_execution, a_full_task, a_task, an_execution
from verification.stores.writing import plain


class Sharing:
    shared = True

    async def _two(self, open_store: OpenStore) -> tuple[Bench, Bench]:
        if not self.shared:
            raise SkipTest("a database of this store has one owner")
        return await Bench.opened(open_store), await Bench.opened(open_store)

    async def test_own_commits_are_not_a_change_elsewhere(self, open_store: OpenStore) -> None:
        """The hint is about others."""
        bench = await Bench.opened(open_store)
        await bench.store.changed_elsewhere()
        await bench.write(new_executions=[an_execution()])
        await bench.store.executions(ORG, [an_execution().id])

        assert await bench.store.changed_elsewhere() is False

    async def test_a_commit_elsewhere_is_told_once(self, open_store: OpenStore) -> None:
        """Also if an own transaction has looked at the database since."""
        here, there = await self._two(open_store)
        await here.store.changed_elsewhere()
        await there.write(new_executions=[an_execution()])
        await here.load(executions={an_execution().id})

        assert await here.store.changed_elsewhere() is True
        assert await here.store.changed_elsewhere() is False

    async def test_records_of_another_store_are_loaded_as_they_were_written(self, open_store: OpenStore) -> None:
        """Every field of a head and of a task."""
        here, there = await self._two(open_store)
        execution = a_full_execution()
        await there.write(
            new_executions=[execution], ready={execution.id: execution}, new_tasks=[a_full_task(execution)]
        )

        loaded = await here.load(tasks={(execution.id, 7)})
        assert loaded.executions == {execution.id: a_full_execution()}
        assert plain(loaded.tasks[execution.id, 7]) == plain(a_full_task(execution))

    async def test_a_load_sees_what_another_store_has_committed(self, open_store: OpenStore) -> None:
        """Whatever this store remembers of the rows."""
        here, there = await self._two(open_store)
        execution = an_execution(ready=Ready(since_at=START))
        await here.write(
            new_executions=[execution],
            ready={execution.id: execution},
            new_tasks=[a_task(execution)],
            workflow_keys={(ORG, "key"): execution.id},
        )
        newer = an_execution(2)
        changed = an_execution(last_seq=4, ready=Ready(since_at=START, worker="w-2"))
        changes = Changes(
            new_executions=[newer],
            changed_executions={changed.id: changed},
            ready={changed.id: changed},
            deleted_tasks=[(execution.id, 1)],
            workflow_keys={(ORG, "key"): newer.id},
        )
        await there.run(LoadPlan(workflow_keys={(ORG, "key")}), lambda _: changes)

        loaded = await here.load(executions={execution.id}, tasks={(execution.id, 1)}, workflow_keys={(ORG, "key")})
        assert loaded.executions == {changed.id: changed, newer.id: newer}
        assert loaded.tasks == {}
        assert loaded.workflow_keys == {(ORG, "key"): newer.id}

    async def test_two_writers_lose_nothing(self, open_store: OpenStore) -> None:
        """Each transaction sees the other's last one: a counter both of them raise ends at the sum."""
        here, there = await self._two(open_store)
        execution = an_execution()
        await here.write(new_executions=[execution])

        def count(loaded: Loaded) -> Changes:
            found = loaded.executions[execution.id]
            found.last_seq += 1
            return Changes(changed_executions={found.id: found})

        plan = LoadPlan(executions={execution.id})
        await asyncio.gather(*(bench.run(plan, count) for bench in (here, there) * 40))

        assert (await here.store.executions(ORG, [execution.id]))[execution.id].last_seq == 80
