"""Reads see what is committed, and nothing of another org."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.model.events import CancelRequested, EventBody, HistoryEvent, SignalReceived, TimerFired
from holdfast.model.executions import NEVER, DeadLetter, DefinitionRow, Ready, State
from holdfast.model.values import Wait
from holdfast.store.queries import Backlog, ExecutionQuery, Inconsistency, QueueDepth
from verification.stores.bench import START, Bench, OpenStore
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


class Reading:
    async def test_definitions_and_workers_are_listed(self, open_store: OpenStore) -> None:
        """By kind with the version registered last first, without the engine's own; sessions with the youngest first;
        of one org alone."""
        bench = await Bench.opened(open_store)
        made = [
            DefinitionRow(org=org, kind=kind, version=version, build="b", registered_at=START + at)
            for org, kind, version, at in (
                (ORG, "b", "1", 1),
                (ORG, "a", "1", 2),
                (ORG, "a", "2", 3),
                (OTHER_ORG, "a", "1", 4),
                (ORG, "holdfast.task", "1", 5),
            )
        ]
        old, young = a_worker("w-1", started_at=START), a_worker("w-2", started_at=START + 1)
        other = a_worker("w-3", org=OTHER_ORG)
        await bench.write(definitions=made, workers={row.id: row for row in (old, young, other)})

        store = bench.store
        assert await store.definitions(ORG, 10) == [made[2], made[1], made[0]]
        assert await store.definitions(ORG, 1) == [made[2]]
        assert await store.definitions(OTHER_ORG, 10) == [made[3]]
        assert await store.workers(ORG, 10) == [young, old]
        assert await store.workers(ORG, 1) == [young]
        assert await store.workers("nobody", 10) == []

    async def test_history_is_read_in_pages(self, open_store: OpenStore) -> None:
        """After a number, up to a limit, in order; and on as the history grows."""
        bench = await Bench.opened(open_store)
        execution = an_execution(last_seq=7)
        events = some_events(7)
        await bench.write(new_executions=[execution], events=[(execution.id, event) for event in events])

        read = bench.store.history
        assert await read(ORG, execution.id) == events
        assert await read(ORG, execution.id, 2, 3) == events[2:5]
        assert await read(ORG, execution.id, after=5) == events[5:]
        assert await read(ORG, execution.id, after=7) == []
        more = some_events(1, first=8)
        await bench.write(events=[(execution.id, more[0])])
        assert await read(ORG, execution.id, after=7) == more

    async def test_history_is_read_by_type(self, open_store: OpenStore) -> None:
        """Only the types named, in order; the limit counts these alone."""
        bench = await Bench.opened(open_store)
        execution = an_execution(last_seq=6)
        bodies: list[EventBody] = [
            SignalReceived(signal_name="a"),
            TimerFired(timer_no=1),
            SignalReceived(signal_name="b"),
            CancelRequested(),
            TimerFired(timer_no=2),
            SignalReceived(signal_name="c"),
        ]
        events = [HistoryEvent(seq, START + seq, body) for seq, body in enumerate(bodies, 1)]
        await bench.write(new_executions=[execution], events=[(execution.id, event) for event in events])

        read = bench.store.history
        timers, signals = [events[1], events[4]], [events[0], events[2], events[5]]
        assert await read(ORG, execution.id, types=("TIMER_FIRED",)) == timers
        assert await read(ORG, execution.id, types=("CANCEL_REQUESTED", "TIMER_FIRED")) == [events[1], *events[3:5]]
        assert await read(ORG, execution.id, after=1, limit=1, types=("SIGNAL_RECEIVED",)) == signals[1:2]
        assert await read(ORG, execution.id, types=("STEP_COMPLETED",)) == []
        assert await read(OTHER_ORG, execution.id, types=("TIMER_FIRED",)) == []

    async def test_events_of_several_histories_are_read_together(self, open_store: OpenStore) -> None:
        """Each in order, only the types named; an execution that has none of them, or is unknown, is left out."""
        bench = await Bench.opened(open_store)
        first, second, other = an_execution(1, last_seq=3), an_execution(2, last_seq=2), an_execution(3, last_seq=1)
        strange = an_execution(4, last_seq=1, org=OTHER_ORG)
        bodies: list[tuple[str, list[EventBody]]] = [
            (first.id, [SignalReceived(signal_name="a"), TimerFired(timer_no=1), SignalReceived(signal_name="b")]),
            (second.id, [CancelRequested(), SignalReceived(signal_name="c")]),
            (other.id, [TimerFired(timer_no=1)]),
            (strange.id, [SignalReceived(signal_name="d")]),
        ]
        made = {key: [HistoryEvent(seq=n, at=START, body=body) for n, body in enumerate(of, 1)] for key, of in bodies}
        # The later ones are written first: the order comes from their numbers.
        events = [(key, event) for key, of in made.items() for event in reversed(of)]
        await bench.write(new_executions=[first, second, other, strange], events=events)

        read, ids = bench.store.events_of, [second.id, first.id, other.id, strange.id, an_id(9)]
        found = await read(ORG, ids, ("SIGNAL_RECEIVED", "CANCEL_REQUESTED"))
        assert found == {first.id: [made[first.id][0], made[first.id][2]], second.id: made[second.id]}
        assert await read(ORG, ids, ("STEP_COMPLETED",)) == {}
        assert await read(ORG, [], ("TIMER_FIRED",)) == {}

    async def test_tasks_of_several_executions_are_read_together(self, open_store: OpenStore) -> None:
        """By their numbers; an execution that has none is left out."""
        bench = await Bench.opened(open_store)
        first, second, idle = an_execution(1), an_execution(2), an_execution(3)
        strange = an_execution(4, org=OTHER_ORG)
        tasks = [a_task(first, 2), a_task(first, 1), a_task(second), a_task(strange)]
        await bench.write(new_executions=[first, second, idle, strange], new_tasks=tasks)

        ids = [execution.id for execution in (strange, idle, second, first)]
        assert await bench.store.tasks_of(ORG, ids) == {first.id: [tasks[1], tasks[0]], second.id: [tasks[2]]}
        assert await bench.store.tasks_of(ORG, []) == {}

    async def test_last_events_are_the_last(self, open_store: OpenStore) -> None:
        """One for each execution that has any."""
        bench = await Bench.opened(open_store)
        long, short, empty = an_execution(1, last_seq=4), an_execution(2, last_seq=1), an_execution(3)
        events = [(long.id, event) for event in some_events(4)] + [(short.id, some_events(1)[0])]
        await bench.write(new_executions=[long, short, empty], events=events)

        found = await bench.store.last_events(ORG, [long.id, short.id, empty.id, an_id(9)])
        assert found == {long.id: some_events(4)[-1], short.id: some_events(1)[0]}

    async def test_every_read_is_scoped_by_org(self, open_store: OpenStore) -> None:
        """With the right id and the wrong org there is nothing to see."""
        bench = await Bench.opened(open_store)
        execution = an_execution(last_seq=2, seen_seq=0)
        await bench.write(
            new_executions=[execution],
            events=[(execution.id, event) for event in some_events(2)],
            workflow_keys={(ORG, execution.workflow_id): execution.id},
            new_tasks=[a_task(execution)],
            new_timers=[a_timer(execution)],
            dead_letters=[DeadLetter(execution_id=execution.id, seq=1, org=ORG, reason="r", at=START)],
        )

        async def everything(org: str) -> list[object]:
            store = bench.store
            return [
                await store.executions(org, [execution.id]),
                await store.execution_by_workflow_id(org, execution.workflow_id),
                await store.history(org, execution.id),
                await store.last_events(org, [execution.id]),
                await store.list_executions(ExecutionQuery(org=org)),
                await store.list_executions(ExecutionQuery(org=org, workflow_id=execution.workflow_id)),
                await store.list_executions(ExecutionQuery(org=org, kinds=(execution.kind,))),
                await store.count_executions(org),
                await store.events_of(org, [execution.id], [event.type for event in some_events(2)]),
                await store.tasks(org, execution.id),
                await store.tasks_of(org, [execution.id]),
                await store.timers(org, execution.id),
                await store.dead_letters(org),
                await store.dead_letters(org, execution.id),
                await store.inconsistencies(org, 10),
            ]

        assert all(await everything(ORG))
        assert not any(await everything(OTHER_ORG))

    async def test_reads_at_the_same_time_get_each_their_own(self, open_store: OpenStore) -> None:
        """However the store bundles them, orgs and ids do not mix."""
        bench = await Bench.opened(open_store)
        cached = [an_execution(number, last_seq=1) for number in range(1, 60)]
        theirs = [an_execution(number, org=OTHER_ORG, last_seq=1) for number in range(61, 120)]
        events = [(execution.id, some_events(1)[0]) for execution in cached + theirs]
        await bench.write(new_executions=cached + theirs, events=events)

        ids = [execution.id for execution in cached + theirs]
        asked = [(org, [execution_id]) for org in (ORG, OTHER_ORG) for execution_id in ids] + [(ORG, ids), (ORG, [])]
        execution_rows = await asyncio.gather(*(bench.store.executions(org, some) for org, some in asked))
        lasts = await asyncio.gather(*(bench.store.last_events(org, some) for org, some in asked))

        orgs = {execution.id: execution.org for execution in cached + theirs}
        expected = [{key for key in some if orgs[key] == org} for org, some in asked]
        assert [set(found) for found in execution_rows] == expected
        assert [set(found) for found in lasts] == expected

    async def test_dead_letters_are_read_newest_first(self, open_store: OpenStore) -> None:
        """Of an org or of one execution, up to a limit."""
        bench = await Bench.opened(open_store)
        letters = [
            DeadLetter(execution_id=an_id(number), seq=seq, org=ORG, reason="r", at=START + at)
            for number, seq, at in ((1, 1, 5), (1, 2, 6), (2, 1, 9), (3, 1, 1))
        ]
        await bench.write(dead_letters=letters)

        one, two, other, old = letters
        assert await bench.store.dead_letters(ORG) == [other, two, one, old]
        assert await bench.store.dead_letters(ORG, limit=2) == [other, two]
        assert await bench.store.dead_letters(ORG, an_id(1)) == [two, one]
        assert await bench.store.dead_letters(ORG, an_id(1), 1) == [two]

    async def test_next_due_is_the_earliest_of_all(self, open_store: OpenStore) -> None:
        """Timers, deadlines of tasks, delayed tasks, delayed ready rows."""
        bench = await Bench.opened(open_store)
        assert await bench.store.next_due_at(START) is None
        execution = an_execution(ready=Ready(since_at=START, not_before_at=START + 50))
        await bench.write(new_executions=[execution], ready={execution.id: execution})
        assert await bench.store.next_due_at(START) == START + 50
        await bench.write(new_tasks=[a_task(execution, not_before_at=START + 40)])
        assert await bench.store.next_due_at(START) == START + 40
        await bench.write(new_tasks=[a_task(execution, 2, worker="w-1", due_at=START + 30)])
        assert await bench.store.next_due_at(START) == START + 30
        await bench.write(new_timers=[a_timer(execution, 1, START + 20)])
        assert await bench.store.next_due_at(START) == START + 20

    async def test_next_due_forgets_delays_that_are_over(self, open_store: OpenStore) -> None:
        """What could be claimed waits for a worker, not for the clock; an overdue timer still counts."""
        bench = await Bench.opened(open_store)
        execution = an_execution(ready=Ready(since_at=START, not_before_at=START + 5))
        tasks = [a_task(execution), a_task(execution, 2, not_before_at=START + 4)]
        await bench.write(new_executions=[execution], ready={execution.id: execution}, new_tasks=tasks)
        assert await bench.store.next_due_at(START + 4) == START + 5
        assert await bench.store.next_due_at(START + 5) is None

        await bench.write(new_timers=[a_timer(execution, 1, START + 1)])
        assert await bench.store.next_due_at(START + 5) == START + 1

    async def test_events_are_told_to_the_holder(self, open_store: OpenStore) -> None:
        """Leased executions with the news flag, and how far their history goes."""
        bench = await Bench.opened(open_store)
        made = [
            an_execution(1, last_seq=5, ready=Ready(since_at=START, worker="w-1", pending_events=True)),
            an_execution(2, last_seq=6, ready=Ready(since_at=START, worker="w-1")),
            an_execution(3, last_seq=7, ready=Ready(since_at=START, worker="w-2", pending_events=True)),
            an_execution(4, last_seq=8, ready=Ready(since_at=START)),
        ]
        await bench.write(new_executions=made, ready={execution.id: execution for execution in made})

        assert await bench.store.pending_events_for("w-1") == [(an_id(1), 5)]
        assert await bench.store.pending_events_for("w-9") == []

    async def test_the_backlog_is_what_could_be_claimed_now(self, open_store: OpenStore) -> None:
        """By org and queue, the fullest first, with the moment the first of it could have been taken."""
        bench = await Bench.opened(open_store)
        made = [
            an_execution(1, ready=Ready(since_at=START + 3)),
            an_execution(2, ready=Ready(since_at=START + 1, not_before_at=START + 2)),
            an_execution(3, ready=Ready(since_at=START, worker="w-1")),
            an_execution(4, ready=Ready(since_at=START, not_before_at=START + 99)),
            an_execution(5, ready=Ready(since_at=START + 4), queue="slow"),
            an_execution(6, ready=Ready(since_at=START + 5), org=OTHER_ORG, state=State.STUCK),
            an_execution(7, state=State.STUCK),
            an_execution(8, state=State.STUCK),
        ]
        tasks = [
            a_task(made[0], 1, scheduled_at=START + 6),
            a_task(made[0], 2, scheduled_at=START, not_before_at=START + 7),
            a_task(made[0], 3, scheduled_at=START, not_before_at=START + 99),
            a_task(made[0], 4, scheduled_at=START, worker="w-1", attempt=1, started_at=START),
            a_task(made[0], 5, scheduled_at=START, deferred=True, attempt=1, started_at=START, not_before_at=NEVER),
            a_task(made[5], 1, scheduled_at=START + 8, org=OTHER_ORG, queue="slow"),
        ]
        ready = {execution.id: execution for execution in made if execution.ready is not None}
        assert await bench.store.backlog(START, 10) == Backlog(turns=[], tasks=[], stuck={})
        await bench.write(new_executions=made, ready=ready, new_tasks=tasks)

        found = await bench.store.backlog(START + 9, 10)
        assert found.turns[0] == QueueDepth(ORG, "default", 2, START + 2)
        assert {(turn.org, turn.queue): turn.waiting for turn in found.turns[1:]} == {
            (ORG, "slow"): 1,
            (OTHER_ORG, "default"): 1,
        }
        assert found.tasks == [
            QueueDepth(ORG, "default", 2, START + 6),
            QueueDepth(OTHER_ORG, "slow", 1, START + 8),
        ]
        assert found.stuck == {ORG: 2, OTHER_ORG: 1}
        assert [len(part) for part in msgspec.structs.astuple(await bench.store.backlog(START + 9, 1))] == [1, 1, 1]

    async def test_inconsistencies_are_found(self, open_store: OpenStore) -> None:
        """Unread events (maybe what it waits for) without a ready row; waits for timers and tasks without a row."""
        bench = await Bench.opened(open_store)
        waits = (Wait("timer", number=1), Wait("timer", number=2), Wait("task", number=1), Wait("signal", "s"))
        asleep = an_execution(1, last_seq=3, seen_seq=2, waiting_for=waits)
        deserted = an_execution(2, waiting_for=waits)
        await bench.write(new_executions=[asleep, deserted], new_timers=[a_timer(deserted, 2)])

        assert await bench.store.inconsistencies(ORG, 10) == [
            Inconsistency(execution_id=asleep.id, unread=True),
            Inconsistency(execution_id=deserted.id, missing_timers=(1,), missing_tasks=(1,)),
        ]
        assert len(await bench.store.inconsistencies(ORG, 1)) == 1

    async def test_healthy_executions_are_not_reported(self, open_store: OpenStore) -> None:
        """Those with a ready row (what they waited for may just have come), those whose rows exist, those closed."""
        bench = await Bench.opened(open_store)
        waits = (Wait("timer", number=1), Wait("task", number=1))
        with_pending_events = an_execution(1, last_seq=3, waiting_for=waits, ready=Ready(since_at=START))
        at_rest = an_execution(2, last_seq=3, seen_seq=3, waiting_for=waits)
        closed = a_closed_execution(3, last_seq=3, seen_seq=1, waiting_for=waits)
        await bench.write(
            new_executions=[with_pending_events, at_rest, closed],
            ready={with_pending_events.id: with_pending_events},
            new_timers=[a_timer(at_rest)],
            new_tasks=[a_task(at_rest)],
        )

        assert await bench.store.inconsistencies(ORG, 10) == []
