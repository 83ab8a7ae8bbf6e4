"""Lists and counts: filters, pages, statuses that follow from the ready row."""

from __future__ import annotations

from typing import Any

from holdfast.model.executions import Execution, Ready, State, WorkflowStatus
from holdfast.model.ids import execution_id
from holdfast.store.queries import ExecutionQuery
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.records import ORG, OTHER_ORG, a_closed_execution, an_execution, an_id

HOUR = 3_600_000_000


async def listed(bench: Bench, **query: Any) -> list[int]:
    """The numbers of the executions on a page."""
    numbers = {an_id(number): number for number in range(100)}
    return [numbers[execution.id] for execution in await bench.store.list_executions(ExecutionQuery(org=ORG, **query))]


async def one_of_each_status(bench: Bench) -> dict[WorkflowStatus, int]:
    """An execution in each status, and its number."""
    closed = [state for state in State if state not in (State.OPEN, State.STUCK)]
    made: list[Execution] = [
        an_execution(1, ready=Ready(since_at=START)),
        an_execution(2, ready=Ready(since_at=START, worker="w-1")),
        an_execution(3),
        an_execution(4, state=State.STUCK, ready=Ready(since_at=START)),
        *(a_closed_execution(number, state=state) for number, state in enumerate(closed, 5)),
    ]
    with_ready = {execution.id: execution for execution in made if execution.ready is not None}
    stranger = an_execution(90, org=OTHER_ORG, ready=Ready(since_at=START))
    await bench.write(new_executions=[*made, stranger], ready=with_ready | {stranger.id: stranger})
    return {execution.status: number for number, execution in enumerate(made, 1)}


class Listing:
    async def test_newest_come_first(self, open_store: OpenStore) -> None:
        """Whole records, by id, up to the limit."""
        bench = await Bench.opened(open_store)
        made = [an_execution(number, ready=Ready(since_at=START)) for number in (2, 1, 3)]
        await bench.write(new_executions=made, ready={execution.id: execution for execution in made})

        assert await bench.store.list_executions(ExecutionQuery(org=ORG, limit=2)) == [made[2], made[0]]

    async def test_pages_follow_each_other_without_gap_or_overlap(self, open_store: OpenStore) -> None:
        """Also while new executions come in: they belong before the first page."""
        bench = await Bench.opened(open_store)
        states = (State.OPEN, State.COMPLETED, State.FAILED)
        await bench.write(new_executions=[an_execution(number, state=states[number % 3]) for number in range(10, 35)])

        found: list[Execution] = []
        while page := await bench.store.list_executions(
            ExecutionQuery(org=ORG, limit=4, before=found[-1].id if found else None)
        ):
            found += page
            await bench.write(new_executions=[an_execution(35 + len(found))])
        assert [execution.id for execution in found] == [an_id(number) for number in range(34, 9, -1)]

    async def test_each_status_is_found(self, open_store: OpenStore) -> None:
        """Pending, running and waiting are told apart by the ready row."""
        bench = await Bench.opened(open_store)
        numbers = await one_of_each_status(bench)
        assert set(numbers) == set(WorkflowStatus)

        for status, number in numbers.items():
            assert await listed(bench, statuses=(status,)) == [number], status
            assert await listed(bench, statuses=(status,), kinds=("shipping", "none")) == [number], status
            assert await listed(bench, statuses=(status,), kinds=("none",)) == []
            assert await listed(bench, statuses=(status,), workflow_id=f"order-{number}") == [number], status
            assert await listed(bench, statuses=(status,), before=an_id(number)) == []
        assert await listed(bench, statuses=tuple(WorkflowStatus)) == sorted(numbers.values(), reverse=True)
        assert await listed(bench, statuses=(WorkflowStatus.WAITING, WorkflowStatus.PENDING)) == [3, 1]

    async def test_executions_are_found_by_time_whatever_their_ids(self, open_store: OpenStore) -> None:
        """A child's id may be older than the child, by any time; nobody is on a page twice."""
        bench = await Bench.opened(open_store)
        times = (
            (0, 0),
            (0, 5 * HOUR),
            (5 * HOUR, 5 * HOUR),
            (5 * HOUR, 0),
            (-9 * HOUR, HOUR),
            (HOUR, HOUR + 30_000_000),
        )
        made = [
            an_execution(number, id=execution_id(START + of_id, 0, number), created_at=START + created)
            for number, (of_id, created) in enumerate(times)
        ]
        await bench.write(new_executions=made)

        async def found(**query: Any) -> set[int]:
            page = await bench.store.list_executions(ExecutionQuery(org=ORG, **query))
            assert [one.id for one in page] == sorted({one.id for one in page}, reverse=True)
            return {int(one.workflow_id.removeprefix("order-")) for one in page}

        assert await found() == {0, 1, 2, 3, 4, 5}
        assert await found(created_from=START + HOUR) == {1, 2, 4, 5}
        assert await found(created_before=START + HOUR) == {0, 3}
        assert await found(created_from=START + HOUR, created_before=START + 2 * HOUR) == {4, 5}
        assert await found(created_from=START, created_before=START + 1, before=made[3].id) == {0}
        assert await found(created_from=START + HOUR, kinds=("shipping", "shipping"), limit=2) == {2, 5}
        assert await found(created_from=START + HOUR, statuses=(WorkflowStatus.WAITING,)) == {1, 2, 4, 5}
        assert await found(created_from=2**62) == set()
        assert await found(created_before=2**62) == {0, 1, 2, 3, 4, 5}
        assert await found(created_from=-5) == {0, 1, 2, 3, 4, 5}

    async def test_each_filter_narrows(self, open_store: OpenStore) -> None:
        """By kind, queue, workflow id and time; the interval includes its beginning and excludes its end."""
        bench = await Bench.opened(open_store)
        await bench.write(
            new_executions=[
                an_execution(1, kind="a", queue="x", workflow_id="w", created_at=START + 1, state=State.FAILED),
                an_execution(2, kind="b", queue="y", workflow_id="w", created_at=START + 2),
                an_execution(3, kind="a", queue="y", workflow_id="v", created_at=START + 3),
            ]
        )

        assert await listed(bench, kinds=("a",)) == [3, 1]
        assert await listed(bench, kinds=("a", "b")) == [3, 2, 1]
        assert await listed(bench, queue="y") == [3, 2]
        assert await listed(bench, workflow_id="w") == [2, 1]
        assert await listed(bench, created_from=START + 2) == [3, 2]
        assert await listed(bench, created_before=START + 2) == [1]
        assert await listed(bench, kinds=("a",), queue="y", created_from=START, created_before=START + 9) == [3]
        assert await listed(bench, workflow_id="w", kinds=("a",), statuses=(WorkflowStatus.FAILED,)) == [1]

    async def test_an_execution_without_a_key_is_found_by_its_id(self, open_store: OpenStore) -> None:
        """Its workflow id is its id."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[an_execution(1, workflow_id=an_id(1)), an_execution(2)])

        assert await listed(bench, workflow_id=an_id(1)) == [1]
        assert await listed(bench, workflow_id=an_id(2)) == []

    async def test_counts_add_up(self, open_store: OpenStore) -> None:
        """Every execution of the org is counted once, under the status callers see."""
        bench = await Bench.opened(open_store)
        assert await bench.store.count_executions(ORG) == {}
        await one_of_each_status(bench)
        await bench.write(new_executions=[an_execution(50), an_execution(51)])

        assert await bench.store.count_executions(ORG) == dict.fromkeys(WorkflowStatus, 1) | {WorkflowStatus.WAITING: 3}

    async def test_all_tags_must_match(self, open_store: OpenStore) -> None:
        """One tag or several, alone and with every other filter; another org's tags do not count."""
        bench = await Bench.opened(open_store)
        blue, red = {"team": "blue", "size": "1"}, {"team": "red", "size": "1"}
        await bench.write(
            new_executions=[
                an_execution(1, metadata=blue, kind="a", workflow_id="w"),
                an_execution(2, metadata=red, kind="a"),
                an_execution(3, metadata=blue, kind="b", state=State.FAILED, queue="slow", created_at=START + 9),
                an_execution(4, metadata={"team": "blue"}),
                an_execution(5, metadata=blue, org=OTHER_ORG),
                an_execution(6, metadata={}),
                an_execution(7),
            ]
        )
        team, size = ("team", "blue"), ("size", "1")

        assert await listed(bench, metadata=(team,)) == [4, 3, 1]
        assert await listed(bench, metadata=(size,)) == [3, 2, 1]
        assert await listed(bench, metadata=(team, size)) == [3, 1]
        assert await listed(bench, metadata=(size, team)) == [3, 1]
        assert await listed(bench, metadata=(team, ("size", "2"))) == []
        assert await listed(bench, metadata=(("blue", "team"),)) == []
        assert await listed(bench, metadata=(team,), statuses=(WorkflowStatus.FAILED,)) == [3]
        assert await listed(bench, metadata=(team,), statuses=(WorkflowStatus.FAILED, WorkflowStatus.WAITING)) == [
            4,
            3,
            1,
        ]
        assert await listed(bench, metadata=(team, size), kinds=("a", "b")) == [3, 1]
        assert await listed(bench, metadata=(team,), workflow_id="w") == [1]
        assert await listed(bench, metadata=(("team", "red"),), workflow_id="w") == []
        assert await listed(bench, metadata=(team,), queue="slow", created_from=START + 9) == [3]

    async def test_tags_and_ready_rows(self, open_store: OpenStore) -> None:
        """Pending and running executions are found by their tags, too."""
        bench = await Bench.opened(open_store)
        tag = {"team": "blue"}
        made = [
            an_execution(1, metadata=tag, ready=Ready(since_at=START)),
            an_execution(2, metadata=tag, ready=Ready(since_at=START, worker="w-1")),
            an_execution(3, metadata=tag),
            an_execution(4, ready=Ready(since_at=START)),
        ]
        await bench.write(
            new_executions=made,
            ready={execution_row.id: execution_row for execution_row in made if execution_row.ready is not None},
        )

        pairs = tuple(tag.items())
        assert await listed(bench, metadata=pairs, statuses=(WorkflowStatus.PENDING,)) == [1]
        assert await listed(bench, metadata=pairs, statuses=(WorkflowStatus.RUNNING,)) == [2]
        assert await listed(bench, metadata=pairs, statuses=(WorkflowStatus.WAITING,)) == [3]
        assert await bench.store.list_executions(ExecutionQuery(org=ORG, metadata=pairs)) == [made[2], made[1], made[0]]

    async def test_changed_tags_are_found_and_the_old_ones_are_not(self, open_store: OpenStore) -> None:
        """The tags of an execution are those it has now."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[an_execution(1, metadata={"step": "one", "team": "blue"})])
        changed = an_execution(1, metadata={"step": "two", "team": "blue"})
        await bench.write(
            changed_executions={changed.id: changed}, state_changed={changed.id}, metadata={changed.id: changed}
        )

        assert await listed(bench, metadata=(("step", "one"),)) == []
        assert await listed(bench, metadata=(("step", "two"),)) == [1]
        assert await listed(bench, metadata=(("team", "blue"),)) == [1]

    async def test_pages_by_tag_follow_each_other(self, open_store: OpenStore) -> None:
        """Each execution once, newest first."""
        bench = await Bench.opened(open_store)
        tags = ({"team": "blue"}, {"team": "red"})
        await bench.write(new_executions=[an_execution(number, metadata=tags[number % 2]) for number in range(10, 31)])

        found: list[Execution] = []
        while page := await bench.store.list_executions(
            ExecutionQuery(org=ORG, limit=4, metadata=(("team", "blue"),), before=found[-1].id if found else None)
        ):
            found += page
        assert [execution_row.id for execution_row in found] == [an_id(number) for number in range(30, 9, -2)]
