"""Claims: who gets which ready row or task, and in which order."""

from __future__ import annotations

from typing import Any

from holdfast.model.executions import Execution, Ready
from holdfast.store.protocol import StickyPolicy, TaskClaim, TurnClaim
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.records import ORG, OTHER_ORG, a_task, an_execution, an_id

BUILDS = {("shipping", "1"): "b1"}


def turn_claim(limit: int = 10, queues: tuple[str, ...] = ("default",), **fields: Any) -> TurnClaim:
    defaults: dict[str, Any] = {"org": ORG, "queues": queues, "builds": BUILDS, "limit": limit}
    return TurnClaim(**(defaults | fields))


def task_claim(limit: int = 10, queues: tuple[str, ...] = ("default",), **fields: Any) -> TaskClaim:
    defaults: dict[str, Any] = {"org": ORG, "queues": queues, "kinds": ("charge",), "limit": limit}
    return TaskClaim(**(defaults | fields))


async def make_ready(bench: Bench, *rows: tuple[int, int, int], **fields: Any) -> list[Execution]:
    """Executions with a ready row each: number, priority, waiting since."""
    made = [
        an_execution(number, priority=priority, ready=Ready(since_at=START + since), **fields)
        for number, priority, since in rows
    ]
    await bench.write(new_executions=made, ready={execution.id: execution for execution in made})
    return made


class Claiming:
    async def test_turns_are_claimed_by_priority_then_age(self, open_store: OpenStore) -> None:
        """The higher number first; among equals, who has waited longest. Their executions come along."""
        bench = await Bench.opened(open_store)
        await make_ready(bench, (1, 0, 5), (2, 0, 3), (3, 9, 9), (4, -1, 0))

        loaded = await bench.load(turn_claims=[turn_claim()])
        assert loaded.turn_claims == [[an_id(3), an_id(2), an_id(1), an_id(4)]]
        assert (await bench.load(turn_claims=[turn_claim(2)])).turn_claims == [[an_id(3), an_id(2)]]
        assert loaded.executions.keys() == {an_id(number) for number in (1, 2, 3, 4)}

    async def test_one_of_many_queues_may_have_all_the_first(self, open_store: OpenStore) -> None:
        """However many queues are asked for, none has a share: the oldest are taken, wherever they are."""
        bench = await Bench.opened(open_store)
        queues = tuple(f"q{number}" for number in range(8))
        crowd = await make_ready(bench, *((number, 0, number) for number in range(1, 11)), queue="q3")
        for number, queue in enumerate(queues):
            [late] = await make_ready(bench, (100 + number, 0, 100 + number), queue=queue)
            await bench.write(new_tasks=[a_task(late, queue=queue, scheduled_at=START + 100)])
        await bench.write(new_tasks=[a_task(one, queue="q3", scheduled_at=START + n) for n, one in enumerate(crowd)])

        loaded = await bench.load(turn_claims=[turn_claim(7, queues)], task_claims=[task_claim(7, queues)])
        assert loaded.turn_claims == [[an_id(number) for number in range(1, 8)]]
        assert [key for key, _ in loaded.task_claims[0]] == loaded.turn_claims[0]
        everything = await bench.load(turn_claims=[turn_claim(12, queues)])
        assert everything.turn_claims == [[*(an_id(number) for number in range(1, 11)), an_id(100), an_id(101)]]

    async def test_order_holds_across_queues(self, open_store: OpenStore) -> None:
        """Several queues are one line."""
        bench = await Bench.opened(open_store)
        await make_ready(bench, (1, 0, 5), (2, 0, 3))
        await make_ready(bench, (3, 0, 4), (4, 1, 9), queue="slow")

        claim = turn_claim(3, ("default", "slow"))
        assert (await bench.load(turn_claims=[claim])).turn_claims == [[an_id(4), an_id(2), an_id(3)]]

    async def test_a_row_goes_to_one_claim_only(self, open_store: OpenStore) -> None:
        """Claims of one batch share what there is; each is answered in its place."""
        bench = await Bench.opened(open_store)
        await make_ready(bench, *((number, 0, number) for number in range(1, 6)))

        loaded = await bench.load(turn_claims=[turn_claim(2), turn_claim(0), turn_claim(2), turn_claim(2)])
        assert loaded.turn_claims == [[an_id(1), an_id(2)], [], [an_id(3), an_id(4)], [an_id(5)]]

    async def test_only_matching_turns_are_claimed(self, open_store: OpenStore) -> None:
        """Not those of another org, queue, kind or version, and not those somebody holds."""
        bench = await Bench.opened(open_store)
        await make_ready(bench, (1, 0, 0), org=OTHER_ORG)
        await make_ready(bench, (2, 0, 0), queue="slow")
        await make_ready(bench, (3, 0, 0), kind="billing")
        await make_ready(bench, (4, 0, 0), version="2")
        held = an_execution(5, ready=Ready(since_at=START, worker="w-1"))
        await bench.write(new_executions=[held], ready={held.id: held})
        await make_ready(bench, (6, 0, 0))

        assert (await bench.load(turn_claims=[turn_claim()])).turn_claims == [[an_id(6)]]
        both = turn_claim(builds=BUILDS | {("shipping", "2"): "b2"})
        assert (await bench.load(turn_claims=[both])).turn_claims == [[an_id(4), an_id(6)]]
        assert (await bench.load(turn_claims=[turn_claim(builds={})])).turn_claims == [[]]

    async def test_a_delayed_turn_waits_except_for_another_build(self, open_store: OpenStore) -> None:
        """`not_before_at` holds back the build that failed, not the one that may be the fix."""
        bench = await Bench.opened(open_store)
        later = START + 100
        delayed = an_execution(1, ready=Ready(since_at=START, not_before_at=later))
        parked = an_execution(2, ready=Ready(since_at=START, not_before_at=later, avoid_build="b1"))
        await bench.write(new_executions=[delayed, parked], ready={delayed.id: delayed, parked.id: parked})

        same, other = turn_claim(), turn_claim(builds={("shipping", "1"): "b2"})
        assert (await bench.load(turn_claims=[same])).turn_claims == [[]]
        assert (await bench.load(turn_claims=[other])).turn_claims == [[an_id(2)]]
        bench.now = later
        assert (await bench.load(turn_claims=[same])).turn_claims == [[an_id(1), an_id(2)]]

    async def test_suspects_are_claimed_few_at_a_time(self, open_store: OpenStore) -> None:
        """The first of them, in its place among the others, which are found however many suspects stand before them."""
        bench = await Bench.opened(open_store)
        await make_ready(bench, *((number, 0, number) for number in range(1, 6)), crashes=2)
        await make_ready(bench, (6, 0, 0), (7, 0, 7), crashes=1)

        def claim(suspects: int, queues: tuple[str, ...] = ("default",)) -> TurnClaim:
            return turn_claim(2, queues, suspect_from=2, suspects=suspects)

        assert (await bench.load(turn_claims=[claim(0)])).turn_claims == [[an_id(6), an_id(7)]]
        assert (await bench.load(turn_claims=[claim(1)])).turn_claims == [[an_id(6), an_id(1)]]
        assert (await bench.load(turn_claims=[claim(0, ("default", "slow"))])).turn_claims == [[an_id(6), an_id(7)]]

    async def test_long_executions_are_left_to_others_for_a_moment(self, open_store: OpenStore) -> None:
        """They use up nobody's share, and are not loaded. What this node has run lately is its own."""
        bench = await Bench.opened(open_store)
        await make_ready(bench, (1, 0, 1), (2, 0, 2), (3, 0, 3), last_seq=500)
        await make_ready(bench, *((number, 0, number) for number in range(4, 9)), last_seq=499)
        short = [an_id(number) for number in range(4, 9)]

        async def claimed(limit: int, sticky: StickyPolicy) -> tuple[list[str], bool]:
            both = [turn_claim(limit, sticky=sticky), turn_claim(limit, ("default", "slow"), sticky=sticky)]
            one, two = [await bench.load(turn_claims=[claim]) for claim in both]
            assert one.turn_claims == two.turn_claims
            assert one.executions.keys() == set(one.turn_claims[0])
            return one.turn_claims[0], one.turns_left and two.turns_left

        theirs = StickyPolicy(min_events=500, sticky_us=100)
        assert (await claimed(3, theirs))[0] == short[:3]
        assert await claimed(10, theirs) == (short, True)
        cached = StickyPolicy(min_events=500, sticky_us=100, cached=({an_id(2)}, {an_id(9)}))
        assert await claimed(10, cached) == ([an_id(2), *short], True)
        bench.now = START + 102
        assert await claimed(10, theirs) == ([an_id(1), an_id(2), *short], True)
        bench.now = START + 103
        assert await claimed(10, theirs) == ([an_id(number) for number in range(1, 9)], False)

    async def test_a_claim_sees_what_the_batch_before_it_wrote(self, open_store: OpenStore) -> None:
        """A leased row is not handed out again; a released one is."""
        bench = await Bench.opened(open_store)
        (execution,) = await make_ready(bench, (1, 0, 0))
        assert execution.ready is not None
        execution.ready.worker = "w-1"
        await bench.write(ready={execution.id: execution})
        assert (await bench.load(turn_claims=[turn_claim()])).turn_claims == [[]]

        execution.ready.worker = None
        await bench.write(ready={execution.id: execution})
        loaded = await bench.load(turn_claims=[turn_claim()])
        assert loaded.turn_claims == [[an_id(1)]]
        assert loaded.executions[an_id(1)].ready == Ready(since_at=START)

    async def test_tasks_are_claimed_by_priority_then_time(self, open_store: OpenStore) -> None:
        """Among equals by the moment they became runnable, so that retries neither starve nor are starved."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        await bench.write(
            new_executions=[execution],
            new_tasks=[
                a_task(execution, 1, scheduled_at=START + 1, not_before_at=START + 6),
                a_task(execution, 2, scheduled_at=START + 5),
                a_task(execution, 3, scheduled_at=START + 7),
                a_task(execution, 4, scheduled_at=START + 9, priority=1),
            ],
        )
        bench.now = START + 10

        loaded = await bench.load(task_claims=[task_claim()])
        assert [task_no for _, task_no in loaded.task_claims[0]] == [4, 2, 1, 3]
        assert (await bench.load(task_claims=[task_claim(2)])).task_claims == [loaded.task_claims[0][:2]]
        assert loaded.tasks.keys() == set(loaded.task_claims[0])
        assert loaded.executions.keys() == {execution.id}

    async def test_only_matching_tasks_are_claimed(self, open_store: OpenStore) -> None:
        """Not those of another org, queue or kind, not those that wait for their time, not those somebody holds."""
        bench = await Bench.opened(open_store)
        cached, theirs = an_execution(1), an_execution(2, org=OTHER_ORG)
        await bench.write(
            new_executions=[cached, theirs],
            new_tasks=[
                a_task(theirs),
                a_task(cached, 1, queue="slow"),
                a_task(cached, 2, kind="mail"),
                a_task(cached, 3, not_before_at=START + 1),
                a_task(cached, 4, worker="w-1"),
                a_task(cached, 5),
            ],
        )

        assert (await bench.load(task_claims=[task_claim()])).task_claims == [[(cached.id, 5)]]
        more = task_claim(queues=("slow", "default"), kinds=("charge", "mail"))
        assert (await bench.load(task_claims=[more])).task_claims == [[(cached.id, 1), (cached.id, 2), (cached.id, 5)]]
        assert (await bench.load(task_claims=[task_claim(kinds=())])).task_claims == [[]]

    async def test_a_task_goes_to_one_claim_only(self, open_store: OpenStore) -> None:
        """As with turns."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        await bench.write(new_executions=[execution], new_tasks=[a_task(execution, number) for number in (1, 2, 3)])

        loaded = await bench.load(task_claims=[task_claim(2), task_claim(2)])
        assert loaded.task_claims == [[(execution.id, 1), (execution.id, 2)], [(execution.id, 3)]]
