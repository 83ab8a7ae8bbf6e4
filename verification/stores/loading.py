"""A plan is answered with what it names, and with the executions that those rows belong to."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DefinitionRow, Ready, RequestRow, TimerRow
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.records import ORG, OTHER_ORG, a_task, a_timer, a_worker, an_execution, an_id


async def two_holders(bench: Bench, first: str, second: str) -> None:
    made = [an_execution(n, ready=Ready(since_at=START, worker=w)) for n, w in ((1, first), (2, second))]
    free = an_execution(3, ready=Ready(since_at=START))
    await bench.write(
        new_executions=[*made, free],
        ready={execution.id: execution for execution in (*made, free)},
        new_tasks=[a_task(made[0], worker=first), a_task(made[1], worker=second), a_task(free)],
    )


class Loading:
    async def test_load_tells_the_time_of_the_store(self, open_store: OpenStore) -> None:
        """`now` is the clock at the transaction's beginning."""
        bench = await Bench.opened(open_store)
        bench.now = START + 77

        assert (await bench.load()).now == START + 77

    async def test_what_does_not_exist_is_not_loaded(self, open_store: OpenStore) -> None:
        """Absent rows are absent, not empty records."""
        bench = await Bench.opened(open_store)
        loaded = await bench.load(
            executions={an_id(1)},
            workflow_keys={(ORG, "x")},
            tasks={(an_id(1), 1)},
            timers={(an_id(1), 1)},
            requests={(ORG, "r")},
            workers={"w"},
            definitions={(ORG, "k")},
            held_by={"w"},
            expired_workers=True,
            due_timers=5,
            due_tasks=5,
        )

        assert loaded == type(loaded)(now=START)

    async def test_calls_after_a_number(self, open_store: OpenStore) -> None:
        """Signals and updates of one execution, in order; nothing else, and nothing of others."""
        bench = await Bench.opened(open_store)
        one, other = an_execution(1), an_execution(2)
        bodies: list[ev.EventBody] = [
            ev.SignalReceived(signal_name="a"),
            ev.SignalReceived(signal_name="b"),
            ev.TimerFired(timer_no=1),
            ev.UpdateRequested(update_id="u", update_name="c"),
        ]
        events = [HistoryEvent(seq, START, body) for seq, body in enumerate(bodies, 1)]
        await bench.write(
            new_executions=[one, other],
            events=[(execution_row.id, event) for execution_row in (one, other) for event in events],
        )

        loaded = await bench.load(calls_after={one.id: 1})
        assert loaded.calls == {one.id: [events[1], events[3]]}
        assert (await bench.load(calls_after={one.id: 4})).calls == {one.id: []}

    async def test_execution_comes_with_its_ready_row(self, open_store: OpenStore) -> None:
        """Its own, and only its own."""
        bench = await Bench.opened(open_store)
        with_pending_events, at_rest = an_execution(1, ready=Ready(since_at=START)), an_execution(2)
        await bench.write(
            new_executions=[with_pending_events, at_rest], ready={with_pending_events.id: with_pending_events}
        )

        loaded = await bench.load(executions={with_pending_events.id, at_rest.id})
        assert loaded.executions == {with_pending_events.id: with_pending_events, at_rest.id: at_rest}

    async def test_workflow_key_brings_its_execution(self, open_store: OpenStore) -> None:
        """A key of another org does not."""
        bench = await Bench.opened(open_store)
        cached, theirs = an_execution(1), an_execution(2, org=OTHER_ORG)
        await bench.write(
            new_executions=[cached, theirs], workflow_keys={(ORG, "key"): cached.id, (OTHER_ORG, "key"): theirs.id}
        )

        loaded = await bench.load(workflow_keys={(ORG, "key"), (ORG, "other")})
        assert loaded.workflow_keys == {(ORG, "key"): cached.id}
        assert loaded.executions == {cached.id: cached}

    async def test_task_and_timer_bring_their_execution(self, open_store: OpenStore) -> None:
        """Even if the row itself is gone: whoever reports on a finished task wants to know what became of it."""
        bench = await Bench.opened(open_store)
        with_task, with_timer, with_nothing = (an_execution(number) for number in (1, 2, 3))
        await bench.write(
            new_executions=[with_task, with_timer, with_nothing],
            new_tasks=[a_task(with_task), a_task(with_task, 2)],
            new_timers=[a_timer(with_timer), a_timer(with_timer, 2)],
        )

        loaded = await bench.load(tasks={(with_task.id, 1), (with_nothing.id, 1)}, timers={(with_timer.id, 2)})
        assert loaded.tasks.keys() == {(with_task.id, 1)}
        assert loaded.timers == {(with_timer.id, 2): a_timer(with_timer, 2)}
        assert loaded.executions.keys() == {with_task.id, with_timer.id, with_nothing.id}

    async def test_due_timers_come_in_order_up_to_the_limit(self, open_store: OpenStore) -> None:
        """Earliest first, a timer due this very moment included, with their executions."""
        bench = await Bench.opened(open_store)
        made = [an_execution(number) for number in range(4)]
        timers = [a_timer(execution, 1, START + at) for execution, at in zip(made, (30, 10, 20, 31), strict=True)]
        await bench.write(new_executions=made, new_timers=timers)
        bench.now = START + 30

        loaded = await bench.load(due_timers=9)
        assert [timer.fire_at - START for timer in loaded.due_timers] == [10, 20, 30]
        assert loaded.timers == {(timer.execution_id, 1): timer for timer in loaded.due_timers}
        assert loaded.executions.keys() == {execution.id for execution in made[:3]}
        first = TimerRow(execution_id=made[1].id, timer_no=1, org=ORG, fire_at=START + 10)
        assert (await bench.load(due_timers=1)).due_timers == [first]

    async def test_due_tasks_come_in_order_up_to_the_limit(self, open_store: OpenStore) -> None:
        """Those whose deadline has passed, with their rows and executions."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        tasks = [a_task(execution, number, due_at=at) for number, at in ((1, START + 5), (2, START), (3, None))]
        await bench.write(new_executions=[execution], new_tasks=[*tasks, a_task(execution, 4, due_at=START + 6)])
        bench.now = START + 5

        loaded = await bench.load(due_tasks=9)
        assert loaded.due_tasks == [(execution.id, 2), (execution.id, 1)]
        assert loaded.tasks.keys() == set(loaded.due_tasks)
        assert loaded.executions.keys() == {execution.id}
        assert (await bench.load(due_tasks=1)).due_tasks == [(execution.id, 2)]

    async def test_expired_workers_come_with_what_they_hold(self, open_store: OpenStore) -> None:
        """A lease that ends now has ended; those who live keep theirs."""
        bench = await Bench.opened(open_store)
        await two_holders(bench, "dead", "alive")
        await bench.write(workers={"dead": a_worker("dead", START + 5), "alive": a_worker("alive", START + 6)})
        bench.now = START + 5

        loaded = await bench.load(expired_workers=True)
        assert loaded.expired_workers == ["dead"]
        assert loaded.workers == {"dead": a_worker("dead", START + 5)}
        assert (loaded.held_turns, loaded.held_tasks) == ([an_id(1)], [(an_id(1), 1)])
        assert loaded.tasks.keys() == {(an_id(1), 1)}
        assert loaded.executions.keys() == {an_id(1)}

    async def test_held_by_finds_what_a_worker_holds(self, open_store: OpenStore) -> None:
        """Turns and tasks of the named sessions, known or not."""
        bench = await Bench.opened(open_store)
        await two_holders(bench, "a", "b")

        loaded = await bench.load(held_by={"b", "c"})
        assert (loaded.held_turns, loaded.held_tasks) == ([an_id(2)], [(an_id(2), 1)])
        assert loaded.executions.keys() == {an_id(2)}
        assert loaded.expired_workers == []

    async def test_definitions_are_grouped_by_kind(self, open_store: OpenStore) -> None:
        """All versions of the kinds asked for, of that org."""
        bench = await Bench.opened(open_store)
        rows = [
            DefinitionRow(org=org, kind=kind, version=version, build="b", registered_at=START)
            for org, kind, version in ((ORG, "k", "1"), (ORG, "k", "2"), (ORG, "other", "1"), (OTHER_ORG, "k", "3"))
        ]
        await bench.write(definitions=rows)

        for _ in range(2):
            loaded = await bench.load(definitions={(ORG, "k"), (ORG, "none")})
            assert loaded.definitions == {(ORG, "k"): rows[:2]}

    async def test_requests_are_scoped_by_org(self, open_store: OpenStore) -> None:
        """Two orgs may use the same request id."""
        bench = await Bench.opened(open_store)
        rows = [
            RequestRow(org=org, request_id="r", fingerprint=org, answer=b"", created_at=START)
            for org in (ORG, OTHER_ORG)
        ]
        await bench.write(requests=rows)

        assert (await bench.load(requests={(ORG, "r")})).requests == {(ORG, "r"): rows[0]}
