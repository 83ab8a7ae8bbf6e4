"""What tasks have said: kept in order, the oldest dropped first, shown to its own org alone."""

from __future__ import annotations

import msgspec

from verification.stores.bench import Bench, OpenStore
from verification.stores.records import ORG, OTHER_ORG, a_full_task, a_task, an_execution, an_output


async def spoken(bench: Bench, org: str = ORG, task_no: int = 1, after: int = 0, limit: int = 100) -> list[int]:
    found = await bench.store.task_output(org, an_execution().id, task_no, after, limit)
    return [row.seq for row in found]


class TaskOutput:
    async def test_output_is_read_as_it_was_written(self, open_store: OpenStore) -> None:
        """Byte for byte, with its attempt and its time."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        said = [an_output(execution, 1), an_output(execution, 2, attempt=3)]
        await bench.write(new_executions=[execution], new_tasks=[a_task(execution)], output=said)

        found = await bench.store.task_output(ORG, execution.id, 1, 0, 10)
        assert [msgspec.json.encode(row) for row in found] == [msgspec.json.encode(row) for row in said]

    async def test_output_is_read_in_pages(self, open_store: OpenStore) -> None:
        """After a number, in order, as many as asked for; of this task alone."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        said = [an_output(execution, seq) for seq in (3, 1, 2, 4)]
        other = [an_output(execution, 9, task_no=2)]
        await bench.write(new_executions=[execution], output=said + other)

        assert await spoken(bench) == [1, 2, 3, 4]
        assert await spoken(bench, after=1, limit=2) == [2, 3]
        assert await spoken(bench, after=4) == []
        assert await spoken(bench, task_no=2) == [9]

    async def test_output_belongs_to_its_org(self, open_store: OpenStore) -> None:
        """Another org finds neither the task nor what it says."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        await bench.write(new_executions=[execution], new_tasks=[a_task(execution)], output=[an_output(execution, 1)])

        assert await spoken(bench, org=OTHER_ORG) == []
        assert await bench.store.task(OTHER_ORG, execution.id, 1) is None

    async def test_output_is_trimmed_from_its_beginning(self, open_store: OpenStore) -> None:
        """Also what comes in the same transaction; other tasks keep theirs."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        first = [an_output(execution, seq) for seq in range(1, 6)]
        other = [an_output(execution, 1, task_no=2)]
        await bench.write(new_executions=[execution], output=first + other)
        more = [an_output(execution, seq) for seq in range(6, 10)]
        await bench.write(output=more, trimmed_output={(execution.id, 1): 7})

        assert await spoken(bench) == [8, 9]
        assert await spoken(bench, task_no=2) == [1]

    async def test_output_stays_when_its_task_is_finished(self, open_store: OpenStore) -> None:
        """Who looks later still finds it, also after the execution's end."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        await bench.write(new_executions=[execution], new_tasks=[a_task(execution)], output=[an_output(execution, 1)])
        await bench.write(deleted_tasks=[(execution.id, 1)], purge=[execution.id])

        assert await spoken(bench) == [1]

    async def test_newer_word_counts_where_a_number_is_taken(self, open_store: OpenStore) -> None:
        """A task whose row was lost and made again counts from 1: that must not stop its transaction."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        await bench.write(new_executions=[execution], output=[an_output(execution, 1)])
        await bench.write(output=[an_output(execution, 1, attempt=5)])

        found = await bench.store.task_output(ORG, execution.id, 1, 0, 10)
        assert [(row.seq, row.attempt) for row in found] == [(1, 5)]

    async def test_one_task_is_read_by_its_number(self, open_store: OpenStore) -> None:
        """With all its fields; None when it is finished or never was."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        task = a_full_task(execution)
        await bench.write(new_executions=[execution], new_tasks=[task])

        found = await bench.store.task(ORG, execution.id, task.task_no)
        assert msgspec.json.encode(found) == msgspec.json.encode(task)
        assert await bench.store.task(ORG, execution.id, 99) is None
