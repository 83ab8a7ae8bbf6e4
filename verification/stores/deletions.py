"""Removing an org, or closed executions: page by page, all of it, and nothing of anybody else."""

from __future__ import annotations

from typing import Any

from holdfast.model.executions import DefinitionRow, RequestRow
from holdfast.model.messages import DeadEvent, EventKeyRow, TriggerRow
from holdfast.store.closed_pages import ClosedPage
from holdfast.store.protocol import Changes, LoadPlan
from holdfast.store.queries import ExecutionQuery
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.keys import a_key, an_act, an_org
from verification.stores.pauses import a_pause
from verification.stores.records import (
    ORG,
    OTHER_ORG,
    a_closed_execution,
    a_task,
    a_timer,
    a_worker,
    an_execution,
    an_id,
    some_events,
)


async def write_org(bench: Bench, org: str, first: int) -> None:
    """Two executions with a history, a task and a timer each, and what belongs to the org itself."""
    numbers = (first, first + 1)
    executions = [an_execution(number, org=org, last_seq=3, metadata={"a": "b"}) for number in numbers]
    changes: dict[str, Any] = {
        "new_executions": executions,
        "events": [(execution.id, event) for execution in executions for event in some_events(3)],
        "workflow_keys": {(org, execution.workflow_id): execution.id for execution in executions},
        "new_tasks": [a_task(execution) for execution in executions],
        "new_timers": [a_timer(execution) for execution in executions],
        "workers": {f"w-{org}": a_worker(f"w-{org}", org=org)},
        "definitions": [DefinitionRow(org=org, kind="k", version="1", build="b", registered_at=START)],
        "requests": [RequestRow(org=org, request_id="r", fingerprint="f", answer=b"{}", created_at=START)],
        "event_keys": {(org, "key"): EventKeyRow(org=org, key="key", retained=0, dropped=1)},
        "dead_events": [DeadEvent(id=first, org=org, key="key", published_at=START, reason="expired", at=START)],
        "triggers": [TriggerRow(org=org, key="key", kind="k", version="1", queue="default")],
        "orgs": {org: an_org(org, audit_seq=1)},
        "new_orgs": {org},
        "keys": {an_id(first): a_key(first, org)},
        "audit": [an_act(1, org)],
        "pauses": {a_pause(org=org).key: a_pause(org=org)},
    }
    await bench.write(**changes)


async def purge(bench: Bench, org: str, page: int) -> int:
    """Until nothing is left; how many pages that took."""
    pages = 0
    while await bench.store.holds_any(org):
        await bench.write(purged_orgs={org: page})
        pages += 1
        assert pages < 100, "it comes to an end"
    return pages


class Deletions:
    async def test_nothing_of_a_purged_org_is_left(self, open_store: OpenStore) -> None:
        """But for its name and its record; another org has all it had."""
        bench = await Bench.opened(open_store)
        await write_org(bench, ORG, 1)
        await write_org(bench, OTHER_ORG, 11)
        await purge(bench, ORG, 100)

        store = bench.store
        assert await store.executions(ORG, [an_id(1), an_id(2)]) == {}
        assert await store.history(ORG, an_id(1)) == []
        assert [await store.tasks(ORG, an_id(1)), await store.timers(ORG, an_id(1))] == [[], []]
        assert [await store.workers(ORG, 10), await store.definitions(ORG, 10), await store.keys(ORG, None, 10)] == [
            [],
            [],
            [],
        ]
        assert await store.org(ORG) == an_org(ORG, audit_seq=1)
        assert await store.audit(ORG, None, 10) == [an_act(1, ORG)]
        assert set(await store.executions(OTHER_ORG, [an_id(11), an_id(12)])) == {an_id(11), an_id(12)}
        assert len(await store.history(OTHER_ORG, an_id(11))) == 3
        assert [pause.org for pause in await store.pauses()] == [OTHER_ORG]
        assert await store.holds_any(OTHER_ORG)

    async def test_it_is_removed_in_pages(self, open_store: OpenStore) -> None:
        """Also a history that is longer than a page."""
        bench = await Bench.opened(open_store)
        await write_org(bench, ORG, 1)
        assert await purge(bench, ORG, 2) > 1
        assert await bench.store.executions(ORG, [an_id(1), an_id(2)]) == {}

    async def test_what_was_purged_is_not_remembered(self, open_store: OpenStore) -> None:
        """A batch that asks for it finds nothing, though it was written or loaded just before."""
        bench = await Bench.opened(open_store)
        await write_org(bench, ORG, 1)
        assert (await bench.load(executions={an_id(1)})).executions
        await purge(bench, ORG, 100)

        loaded = await bench.load(
            executions={an_id(1)},
            tasks={(an_id(1), 1)},
            workflow_keys={(ORG, "order-1")},
            workers={f"w-{ORG}"},
            definitions={(ORG, "k")},
        )
        found = (loaded.executions, loaded.tasks, loaded.workflow_keys, loaded.workers, loaded.definitions)
        assert not any(found), found

    async def test_what_is_to_be_removed_is_listed_until_it_is_done(self, open_store: OpenStore) -> None:
        """Asked for twice, it counts from the first time."""
        bench = await Bench.opened(open_store)
        await bench.write(deletions={ORG: START, OTHER_ORG: START + 1})
        await bench.write(deletions={ORG: START + 9})
        assert await bench.store.deletions() == [(ORG, START), (OTHER_ORG, START + 1)]

        await bench.write(finished_deletions=[ORG])
        assert await bench.store.deletions() == [(OTHER_ORG, START + 1)]
        assert not await bench.store.holds_any(ORG)

    async def test_what_was_written_with_the_page_is_gone_too(self, open_store: OpenStore) -> None:
        """A page comes last in its transaction."""
        bench = await Bench.opened(open_store)
        late = an_execution(5)
        await bench.write(new_executions=[late], purged_orgs={ORG: 10})
        assert not await bench.store.holds_any(ORG)

    async def test_closed_executions_are_found_in_the_order_they_were_closed_in(self, open_store: OpenStore) -> None:
        """Those that are open, were closed later or have open children are not over."""
        bench = await Bench.opened(open_store)
        made = [
            a_closed_execution(1, closed_at=START + 9, last_seq=4),
            an_execution(2),
            a_closed_execution(3, closed_at=START + 50),
            a_closed_execution(4, closed_at=START + 7, open_children=1),
            a_closed_execution(5, closed_at=START + 8, org=OTHER_ORG),
            a_closed_execution(60, closed_at=START + 6),
        ]
        await bench.write(new_executions=made)
        store = bench.store

        over = [(an_id(60), 0), (an_id(5), 0), (an_id(1), 4)]
        assert await store.closed_page(START + 50, "", 10) == ClosedPage(over, None)
        assert await store.closed_page(START + 51, "", 10) == ClosedPage([*over, (an_id(3), 0)], None)
        assert await store.closed_page(START + 6, "", 10) == ClosedPage([], None)

    async def test_a_page_starts_after_the_one_before(self, open_store: OpenStore) -> None:
        """Also among those that were closed in the same instant."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[a_closed_execution(number) for number in (5, 3, 1, 4, 2)])
        await bench.write(new_executions=[a_closed_execution(6, closed_at=START + 1)])

        found, after, sizes = [], "", []
        while True:
            page = await bench.store.closed_page(START + 40, after, 2)
            found += [key for key, _ in page.executions]
            sizes.append(len(page.executions))
            if page.after is None:
                break
            after = page.after
        assert found == [an_id(number) for number in (6, 1, 2, 3, 4, 5)]
        assert sizes[:3] == [2, 2, 2]

    async def test_events_that_remain_are_not_found_and_are_cleared_in_pages(self, open_store: OpenStore) -> None:
        """Their execution is gone from the beginning, and another one has all it had."""
        bench = await Bench.opened(open_store)
        await write_org(bench, ORG, 1)
        loaded = await bench.load(idle_executions={an_id(1)})
        assert not await bench.store.has_remains()
        await bench.write(removed=loaded.executions, remains={an_id(1)})

        pages = 0
        while await bench.store.has_remains():
            assert await bench.store.executions(ORG, [an_id(1)]) == {}
            assert await bench.store.history(ORG, an_id(1)) == []
            assert await bench.store.last_events(ORG, [an_id(1)]) == {}
            assert await bench.store.events_of(ORG, [an_id(1)], ["SIGNAL_RECEIVED"]) == {}
            assert [found.id for found in await bench.store.list_executions(ExecutionQuery(org=ORG))] == [an_id(2)]
            await bench.write(cleared=2)
            pages += 1
        assert pages == 2
        assert len(await bench.store.history(ORG, an_id(2))) == 3
        # Nothing is left in the way of the same rows.
        await bench.write(new_executions=[an_execution(1, last_seq=3)], events=[(an_id(1), e) for e in some_events(3)])

    async def test_what_remains_of_an_org_goes_with_it(self, open_store: OpenStore) -> None:
        """And what remains of another one stays."""
        bench = await Bench.opened(open_store)
        await write_org(bench, ORG, 1)
        await write_org(bench, OTHER_ORG, 11)
        for number in (1, 11):
            loaded = await bench.load(idle_executions={an_id(number)})
            await bench.write(removed=loaded.executions, remains={an_id(number)})
        await purge(bench, ORG, 2)

        assert await bench.store.has_remains()
        await purge(bench, OTHER_ORG, 2)
        assert not await bench.store.has_remains()

    async def test_nothing_of_a_removed_execution_is_left(self, open_store: OpenStore) -> None:
        """Its workflow id goes with it; one that has moved on to another execution stays."""
        bench = await Bench.opened(open_store)
        await write_org(bench, ORG, 1)
        moved = an_execution(9, workflow_id=an_execution(2).workflow_id)
        changes = Changes(new_executions=[moved], workflow_keys={(ORG, moved.workflow_id): moved.id})
        await bench.run(LoadPlan(workflow_keys={(ORG, moved.workflow_id)}), lambda _: changes)
        loaded = await bench.load(idle_executions={an_id(1), an_id(2)})
        await bench.write(removed=loaded.executions)

        left = await bench.load(
            executions={an_id(1), an_id(2), an_id(9)},
            tasks={(an_id(1), 1)},
            workflow_keys={(ORG, an_execution(1).workflow_id), (ORG, moved.workflow_id)},
        )
        assert left.executions.keys() == {an_id(9)}
        assert not left.tasks
        assert left.workflow_keys == {(ORG, moved.workflow_id): an_id(9)}
        assert await bench.store.history(ORG, an_id(1)) == []
        assert [await bench.store.tasks(ORG, an_id(1)), await bench.store.timers(ORG, an_id(2))] == [[], []]
        page = await bench.store.list_executions(ExecutionQuery(org=ORG, metadata=(("a", "b"),)))
        assert page == []
