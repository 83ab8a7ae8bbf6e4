"""What is written is there, whole, in order, once; what fails leaves nothing."""

from __future__ import annotations

import msgspec

from holdfast.model.events import EVENT_TYPES, HistoryEvent, SignalReceived, TimerFired
from holdfast.model.executions import DeadLetter, DefinitionRow, Execution, Ready, RequestRow, State
from holdfast.model.values import Wait
from holdfast.store.protocol import Changes, LoadPlan
from verification.stores.bench import START, Bench, Decide, OpenStore
from verification.stores.records import (
    ORG,
    a_closed_execution,
    a_full_closed_execution,
    a_full_execution,
    a_full_task,
    a_task,
    a_timer,
    a_worker,
    an_execution,
    every_kind_of_event,
    some_events,
)


def plain(record: object) -> object:
    """Payloads compare by identity; their JSON does not."""
    return msgspec.json.encode(record)


def start(execution: Execution) -> Decide:
    """A decision that makes this execution."""
    return lambda _: Changes(new_executions=[execution], ready={execution.id: execution})


async def ready_row(bench: Bench, execution: Execution) -> Ready | None:
    loaded = await bench.load(executions={execution.id})
    read = await bench.store.executions(ORG, [execution.id])
    assert loaded.executions == read
    return read[execution.id].ready


class Writing:
    async def test_execution_is_read_as_it_was_written(self, open_store: OpenStore) -> None:
        """Every field of a head and its ready row survives."""
        bench = await Bench.opened(open_store)
        written, closed = a_full_execution(), a_full_closed_execution()
        await bench.write(new_executions=[written, closed], ready={written.id: written})

        found = await bench.store.executions(ORG, [written.id, closed.id])
        assert found == {written.id: a_full_execution(), closed.id: a_full_closed_execution()}

    async def test_execution_with_defaults_is_read_as_it_was_written(self, open_store: OpenStore) -> None:
        """Absent values come back absent."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[an_execution(metadata={})])

        found = await bench.store.executions(ORG, [an_execution().id])
        assert list(found.values()) == [an_execution(metadata={})]

    async def test_changed_execution_replaces_the_old_one(self, open_store: OpenStore) -> None:
        """A changed head is read with all its changes."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[an_execution()])
        changed = a_full_execution()
        changed.workflow_id, changed.kind, changed.created_at = "order-1", "shipping", START
        changed.ready = None
        await bench.write(changed_executions={changed.id: changed}, state_changed={changed.id})

        assert await bench.store.executions(ORG, [changed.id]) == {changed.id: changed}
        closed = a_full_closed_execution()
        await bench.write(new_executions=[an_execution(2)])
        await bench.write(changed_executions={closed.id: closed}, state_changed={closed.id})
        assert await bench.store.executions(ORG, [closed.id]) == {closed.id: closed}

    async def test_execution_that_has_continued_keeps_the_rest(self, open_store: OpenStore) -> None:
        """Without being named as turned, a head is written as far as it goes on; state and origin stay as they were."""
        bench = await Bench.opened(open_store)
        before = a_full_execution()
        before.ready = None
        await bench.write(new_executions=[before])
        after = a_full_execution()
        after.ready = None
        after.updated_at, after.last_seq, after.seen_seq, after.call_seq = START + 9, 50, 49, 48
        after.signal_count, after.open_tasks, after.open_timers, after.open_children = 7, 6, 5, 3
        after.epoch, after.nonce, after.close_rounds, after.cancel_requested = 4, 3, 2, True
        after.waiting_for = (Wait("signal", "go"),)
        await bench.write(changed_executions={after.id: after})

        assert await bench.store.executions(ORG, [after.id]) == {after.id: after}

    async def test_execution_made_and_changed_at_once_is_written_once(self, open_store: OpenStore) -> None:
        """A head may be among the new and the changed ones of the same batch."""
        bench = await Bench.opened(open_store)
        execution = an_execution(last_seq=3)
        await bench.write(new_executions=[execution], changed_executions={execution.id: execution})

        assert (await bench.store.executions(ORG, [execution.id]))[execution.id].last_seq == 3

    async def test_second_execution_with_the_same_id_is_refused(self, open_store: OpenStore) -> None:
        """An id is never reused, not even silently."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[an_execution(queue="first")])
        refused = await bench.run_together([(LoadPlan(), start(an_execution(queue="second")))])

        assert isinstance(refused[0], Exception)
        assert (await bench.store.executions(ORG, [an_execution().id]))[an_execution().id].queue == "first"

    async def test_ready_row_changes_only_when_it_is_named(self, open_store: OpenStore) -> None:
        """A head alone leaves the ready row; naming it writes or deletes it."""
        bench = await Bench.opened(open_store)
        execution = an_execution(ready=Ready(since_at=START))
        await bench.write(new_executions=[execution], ready={execution.id: execution})
        assert await ready_row(bench, execution) == Ready(since_at=START)

        execution.ready = Ready(since_at=START, worker="w-1")
        await bench.write(ready={execution.id: execution})
        assert await ready_row(bench, execution) == Ready(since_at=START, worker="w-1")

        execution.last_seq = 1
        await bench.write(changed_executions={execution.id: execution})
        assert await ready_row(bench, execution) == Ready(since_at=START, worker="w-1")

        execution.ready = None
        await bench.write(changed_executions={execution.id: execution}, ready={execution.id: execution})
        assert await ready_row(bench, execution) is None

    async def test_every_type_of_event_is_read_as_it_was_written(self, open_store: OpenStore) -> None:
        """Bodies survive, payloads byte for byte."""
        bench = await Bench.opened(open_store)
        bodies = every_kind_of_event()
        assert {body.TYPE for body in bodies} == set(EVENT_TYPES)
        written = [HistoryEvent(seq, START + seq, body) for seq, body in enumerate(bodies, 1)]
        execution = an_execution(last_seq=len(written))
        await bench.write(new_executions=[execution], events=[(execution.id, event) for event in written])

        read = await bench.store.history(ORG, execution.id)
        assert [event.type for event in read] == [event.type for event in written]
        assert plain(read) == plain(written)

    async def test_second_event_with_the_same_number_is_refused(self, open_store: OpenStore) -> None:
        """Two writers of one number are a bug that must show: the first event stays, nothing of the second is
        written."""
        bench = await Bench.opened(open_store)
        execution = an_execution(last_seq=1)
        await bench.write(new_executions=[execution], events=[(execution.id, some_events(1)[0])])
        events = [(execution.id, HistoryEvent(seq, START, TimerFired(timer_no=1))) for seq in (2, 1)]
        twice = Changes(new_executions=[an_execution(2)], events=events)
        refused = await bench.run_together([(LoadPlan(), lambda _: twice)])

        assert isinstance(refused[0], Exception)
        assert await bench.store.executions(ORG, [an_execution(2).id]) == {}
        assert [event.type for event in await bench.store.history(ORG, execution.id)] == ["SIGNAL_RECEIVED"]

    async def test_task_is_read_as_it_was_written(self, open_store: OpenStore) -> None:
        """Every field of a task survives, in a load and in a read."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        await bench.write(new_executions=[execution], new_tasks=[a_full_task(execution), a_task(execution)])

        read = await bench.store.tasks(ORG, execution.id)
        assert plain(read) == plain([a_task(execution), a_full_task(execution)])
        loaded = await bench.load(tasks={(execution.id, 7)})
        assert plain(loaded.tasks[execution.id, 7]) == plain(a_full_task(execution))

    async def test_changed_task_replaces_the_old_one(self, open_store: OpenStore) -> None:
        """What an attempt changes in a task is kept."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        await bench.write(new_executions=[execution], new_tasks=[a_task(execution)])
        changed = a_task(execution, attempt=1, nonce=5, worker="w-1", started_at=START, due_at=START + 9, progress=0.1)
        await bench.write(changed_tasks={(execution.id, 1): changed})

        assert plain(await bench.store.tasks(ORG, execution.id)) == plain([changed])

    async def test_deleted_rows_are_gone(self, open_store: OpenStore) -> None:
        """Deleting a task, a timer or a worker removes that one."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        await bench.write(
            new_executions=[execution],
            new_tasks=[a_task(execution, number) for number in (1, 2, 3)],
            new_timers=[a_timer(execution, number) for number in (1, 2, 3)],
            workers={"w-1": a_worker("w-1"), "w-2": a_worker("w-2")},
        )
        await bench.write(
            deleted_tasks=[(execution.id, 1), (execution.id, 3)],
            deleted_timers=[(execution.id, 2)],
            deleted_workers=["w-1"],
        )

        assert [task.task_no for task in await bench.store.tasks(ORG, execution.id)] == [2]
        assert [timer.timer_no for timer in await bench.store.timers(ORG, execution.id)] == [1, 3]
        loaded = await bench.load(workers={"w-1", "w-2"}, tasks={(execution.id, 1)})
        assert (set(loaded.workers), loaded.tasks) == ({"w-2"}, {})

    async def test_rows_made_and_deleted_at_once_do_not_stay(self, open_store: OpenStore) -> None:
        """Within a batch deletes come after inserts."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        await bench.write(
            new_executions=[execution],
            new_tasks=[a_task(execution)],
            deleted_tasks=[(execution.id, 1)],
            new_timers=[a_timer(execution)],
            deleted_timers=[(execution.id, 1)],
        )

        assert await bench.store.tasks(ORG, execution.id) == []
        assert await bench.store.timers(ORG, execution.id) == []

    async def test_purge_deletes_the_tasks_and_timers_of_one_execution(self, open_store: OpenStore) -> None:
        """Its history stays, and so does everything of its neighbours."""
        bench = await Bench.opened(open_store)
        gone, kept = an_execution(1, last_seq=2), an_execution(2)
        await bench.write(
            new_executions=[gone, kept],
            events=[(gone.id, event) for event in some_events(2)],
            new_tasks=[a_task(execution, number) for execution in (gone, kept) for number in (1, 2)],
            new_timers=[a_timer(execution, number) for execution in (gone, kept) for number in (1, 2)],
        )
        await bench.write(purge=[gone.id])

        assert await bench.store.tasks(ORG, gone.id) == []
        assert await bench.store.timers(ORG, gone.id) == []
        assert (await bench.load(tasks={(gone.id, 1), (kept.id, 1)})).tasks.keys() == {(kept.id, 1)}
        assert len(await bench.store.tasks(ORG, kept.id)) == len(await bench.store.timers(ORG, kept.id)) == 2
        assert len(await bench.store.history(ORG, gone.id)) == 2

    async def test_workflow_key_points_at_the_newest_execution(self, open_store: OpenStore) -> None:
        """Writing a key again moves it."""
        bench = await Bench.opened(open_store)
        old, new = a_closed_execution(1, workflow_id="order"), an_execution(2, workflow_id="order")
        await bench.write(new_executions=[old], workflow_keys={(ORG, "order"): old.id})
        moved = Changes(new_executions=[new], workflow_keys={(ORG, "order"): new.id})
        await bench.run(LoadPlan(workflow_keys={(ORG, "order")}), lambda _: moved)

        loaded = await bench.load(workflow_keys={(ORG, "order")})
        assert loaded.workflow_keys == {(ORG, "order"): new.id}
        assert await bench.store.execution_by_workflow_id(ORG, "order") == new

    async def test_small_records_are_loaded_as_they_were_written(self, open_store: OpenStore) -> None:
        """Workers, definitions and requests survive; the latest registration of a version counts."""
        bench = await Bench.opened(open_store)
        old = DefinitionRow(org=ORG, kind="k", version="1", build="b1", registered_at=START)
        new = DefinitionRow(org=ORG, kind="k", version="1", build="b2", registered_at=START + 1)
        request = RequestRow(org=ORG, request_id="r", fingerprint="f", answer=b"\x00\xff{}", created_at=START)
        await bench.write(workers={"w-1": a_worker()}, definitions=[old], requests=[request])
        await bench.load(definitions={(ORG, "k")})
        await bench.write(workers={"w-1": a_worker(lease_until_at=START + 60)}, definitions=[new])

        loaded = await bench.load(workers={"w-1"}, definitions={(ORG, "k")}, requests={(ORG, "r")})
        assert loaded.workers == {"w-1": a_worker(lease_until_at=START + 60)}
        assert loaded.definitions == {(ORG, "k"): [new]}
        assert loaded.requests == {(ORG, "r"): request}

    async def test_expired_requests_are_found_the_oldest_first(self, open_store: OpenStore) -> None:
        """Those whose time is over; one that has started an execution, when that has been closed for its time to
        live."""
        bench = await Bench.opened(open_store)
        closed = an_execution(number=1, state=State.COMPLETED, closed_at=START + 4)
        running = an_execution(number=2)
        rows = [
            RequestRow(
                org=ORG,
                request_id=name,
                fingerprint="",
                answer=b"",
                created_at=START,
                ttl=3,
                expires_at=START + life,
                execution_id=execution_id,
            )
            for name, life, execution_id in [
                ("b", 2, None),
                ("a", 1, None),
                ("later", 9, None),
                ("open", 1, running.id),
                ("closed", 3, closed.id),
                ("gone", 4, "no such execution"),
            ]
        ]
        await bench.write(requests=rows, new_executions=[closed, running])

        async def found_at(after: int, limit: int = 9) -> list[str]:
            bench.now = START + after
            return [name for _, name in (await bench.load(expired_requests=limit)).expired_requests]

        assert await found_at(0) == []
        assert await found_at(1) == ["a"]
        assert await found_at(6, limit=2) == ["a", "b"]
        assert await found_at(6) == ["a", "b", "gone"]
        assert await found_at(7) == ["a", "b", "closed", "gone"]
        assert await found_at(99) == ["a", "b", "closed", "gone", "later"]

    async def test_a_key_can_be_deleted_and_written_at_once(self, open_store: OpenStore) -> None:
        """Deleting comes first: what is used again stays."""
        bench = await Bench.opened(open_store)
        old = [RequestRow(org=ORG, request_id=name, fingerprint="old", answer=b"", created_at=START) for name in "ab"]
        new = RequestRow(org=ORG, request_id="b", fingerprint="new", answer=b"", created_at=START)
        await bench.write(requests=old)
        await bench.write(requests=[new], deleted_requests=[(ORG, "a"), (ORG, "b")])

        assert (await bench.load(requests={(ORG, "a"), (ORG, "b")})).requests == {(ORG, "b"): new}

    async def test_dead_letter_makes_dead_letters_of_later_signals(self, open_store: OpenStore) -> None:
        """Signals after the number, including those of the same batch; other events, and letters already written,
        stay."""
        bench = await Bench.opened(open_store)
        execution = an_execution(last_seq=5)
        events = [*some_events(3), HistoryEvent(4, START, TimerFired(timer_no=1))]
        await bench.write(new_executions=[execution], events=[(execution.id, event) for event in events])
        known = DeadLetter(execution_id=execution.id, seq=2, org=ORG, reason="earlier", at=START)
        bench.now = START + 9
        last = HistoryEvent(5, START, SignalReceived(signal_name="late"))
        await bench.write(
            dead_letters=[known], events=[(execution.id, last)], dead_letter=[(execution.id, 1, "closed")]
        )

        letters = await bench.store.dead_letters(ORG, execution.id)
        assert [(letter.seq, letter.reason) for letter in letters] == [(5, "closed"), (3, "closed"), (2, "earlier")]
        assert letters[0] == DeadLetter(
            execution_id=execution.id,
            seq=5,
            org=ORG,
            reason="closed",
            at=START + 9,
            signal_name="late",
            received_at=START,
        )

    async def test_settled_dead_letters_are_not_shown_and_never_come_back(self, open_store: OpenStore) -> None:
        """They can still be loaded, with the signal they were."""
        bench = await Bench.opened(open_store)
        execution = an_execution(last_seq=3)
        signals = [HistoryEvent(seq, START, SignalReceived(signal_name=f"s{seq}")) for seq in (1, 2, 3)]
        letters = [DeadLetter(execution_id=execution.id, seq=seq, org=ORG, reason="r", at=START) for seq in (1, 2, 3)]
        await bench.write(
            new_executions=[execution], events=[(execution.id, event) for event in signals], dead_letters=letters
        )
        await bench.write(settled_letters=[(execution.id, 1), (execution.id, 3)])
        await bench.write(dead_letters=letters, dead_letter=[(execution.id, 0, "again")])

        shown = await bench.store.dead_letters(ORG, execution.id)
        assert [(letter.seq, letter.signal_name, letter.reason) for letter in shown] == [(2, "s2", "r")]
        loaded = await bench.load(dead_letters={(execution.id, 2), (execution.id, 3), (execution.id, 4)})
        found = {key[1]: (letter.settled, signal) for key, (letter, signal) in loaded.dead_letters.items()}
        assert found == {2: (False, signals[1].body), 3: (True, signals[2].body)}

    async def test_a_large_batch_is_written_whole(self, open_store: OpenStore) -> None:
        """No number of rows is special."""
        bench = await Bench.opened(open_store)
        made = [an_execution(number, last_seq=3, ready=Ready(since_at=START)) for number in range(1, 1_236)]
        await bench.write(
            new_executions=made,
            ready={execution.id: execution for execution in made},
            events=[(execution.id, event) for execution in made for event in some_events(3)],
            new_timers=[a_timer(execution) for execution in made],
            workflow_keys={(ORG, execution.workflow_id): execution.id for execution in made},
        )
        for execution in made:
            execution.state, execution.closed_at, execution.ready = State.COMPLETED, START + 1, None
        await bench.write(
            changed_executions={execution.id: execution for execution in made},
            state_changed={execution.id for execution in made},
            ready={execution.id: execution for execution in made},
            deleted_timers=[(execution.id, 1) for execution in made],
        )

        assert await bench.store.executions(ORG, [e.id for e in made]) == {e.id: e for e in made}
        loaded = await bench.load(workflow_keys={(ORG, e.workflow_id) for e in made}, due_timers=9)
        assert (len(loaded.workflow_keys), len(loaded.executions), loaded.due_timers) == (1_235, 1_235, [])
