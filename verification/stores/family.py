"""Parents, children and what a run leaves to the next: how a plan finds them, and how they are written."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.events import EventBody, HistoryEvent
from holdfast.model.executions import Execution, State
from holdfast.model.values import ParentClose
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.records import ORG, a_closed_execution, an_execution, an_id, some_events


def a_child(number: int, parent: Execution, child_no: int, **fields: object) -> Execution:
    made = a_closed_execution if fields.get("state") is not None else an_execution
    policy = {"on_parent_close": ParentClose.DEFAULT.value}
    return made(number, **(policy | {"parent_id": parent.id, "child_no": child_no} | fields))


class Family:
    async def test_an_open_child_is_found_by_its_parent_and_number(self, open_store: OpenStore) -> None:
        """With its own record and its parent's; other numbers and other parents are left alone."""
        bench = await Bench.opened(open_store)
        parent, other = an_execution(1), an_execution(2)
        children = [a_child(3, parent, 1), a_child(4, parent, 2), a_child(5, other, 1)]
        await bench.write(new_executions=[parent, other, *children])

        loaded = await bench.load(children={(parent.id, 2), (parent.id, 3), (other.id, 2)})
        assert loaded.children == {(parent.id, 2): an_id(4)}
        assert loaded.executions == {an_id(4): children[1], parent.id: parent}

    async def test_the_open_run_of_a_child_is_the_child(self, open_store: OpenStore) -> None:
        """A child that has continued as new is its last run; one that has closed is not found at all."""
        bench = await Bench.opened(open_store)
        parent = an_execution(1)
        before = a_child(2, parent, 1, state=State.CONTINUED, successor=an_id(3))
        now, closed = a_child(3, parent, 1), a_child(4, parent, 2, state=State.COMPLETED)
        await bench.write(new_executions=[parent, before, now, closed])

        loaded = await bench.load(children={(parent.id, 1), (parent.id, 2)})
        assert loaded.children == {(parent.id, 1): now.id}

    async def test_an_open_child_brings_its_parent_along(self, open_store: OpenStore) -> None:
        """Whoever closes it must tell its parent. The parent's own parent stays where it is."""
        bench = await Bench.opened(open_store)
        grandparent = an_execution(1)
        parent = a_child(2, grandparent, 1)
        child = a_child(3, parent, 1)
        await bench.write(new_executions=[grandparent, parent, child])

        for _ in range(2):
            assert (await bench.load(executions={child.id})).executions == {child.id: child, parent.id: parent}

    async def test_a_closed_child_comes_alone(self, open_store: OpenStore) -> None:
        """It has told its parent all it had to tell."""
        bench = await Bench.opened(open_store)
        parent = an_execution(1)
        child = a_child(2, parent, 1, state=State.FAILED)
        await bench.write(new_executions=[parent, child])

        assert (await bench.load(executions={child.id})).executions == {child.id: child}

    async def test_a_child_whose_parent_is_gone_is_loaded_all_the_same(self, open_store: OpenStore) -> None:
        """Histories may be deleted one by one."""
        bench = await Bench.opened(open_store)
        orphan = a_child(2, an_execution(1), 1)
        await bench.write(new_executions=[orphan])

        assert (await bench.load(executions={orphan.id})).executions == {orphan.id: orphan}

    async def test_orphans_are_the_bound_children_of_closed_parents(self, open_store: OpenStore) -> None:
        """A page of them, with both records. Open parents, abandoned and closed children do not count."""
        bench = await Bench.opened(open_store)
        closed = a_closed_execution(1, open_children=2)
        running = an_execution(2, open_children=1)
        bound = [a_child(3, closed, 1), a_child(4, closed, 2, on_parent_close=ParentClose.TERMINATE.value)]
        others = [
            a_child(5, closed, 3, on_parent_close=ParentClose.ABANDON.value),
            a_child(6, closed, 4, state=State.COMPLETED),
            a_child(7, running, 1),
        ]
        await bench.write(new_executions=[closed, running, *bound, *others])

        loaded = await bench.load(orphans=9)
        assert loaded.orphans == [(closed.id, an_id(3)), (closed.id, an_id(4))]
        assert loaded.executions == {execution.id: execution for execution in (closed, *bound)}
        assert (await bench.load(orphans=1)).orphans == [(closed.id, an_id(3))]

    async def test_a_closed_parent_that_counts_children_it_has_not_is_named(self, open_store: OpenStore) -> None:
        """So that its count can be put right; one that counts none is left alone."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[a_closed_execution(1, open_children=1), a_closed_execution(2)])

        loaded = await bench.load(orphans=9)
        assert loaded.orphans == [(an_id(1), None)]
        assert loaded.executions.keys() == {an_id(1)}

    async def test_a_plan_without_family_finds_none(self, open_store: OpenStore) -> None:
        """What is not asked for is not loaded, and what does not exist is absent."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[a_closed_execution(1, open_children=1), an_execution(2)])

        loaded = await bench.load(executions={an_id(2)}, children={(an_id(2), 1)}, unread={an_id(9): (0, ())})
        assert (loaded.children, loaded.orphans, loaded.unread) == ({}, [], {an_id(9): []})

    async def test_unread_signals_and_updates_are_loaded_in_order(self, open_store: OpenStore) -> None:
        """Those after a number, and single ones before it; nothing of other kinds or other executions."""
        bench = await Bench.opened(open_store)
        bodies: list[EventBody] = [
            ev.WorkflowStarted(kind="k", workflow_id="w"),
            ev.SignalReceived(signal_name="a"),
            ev.SignalReceived(signal_name="b"),
            ev.SignalReceived(signal_name="c"),
            ev.TimerFired(timer_no=1),
            ev.UpdateRequested(update_id="u", update_name="n"),
            ev.CancelRequested(),
            ev.SignalReceived(signal_name="d"),
        ]
        events = [HistoryEvent(seq, START + seq, body) for seq, body in enumerate(bodies, 1)]
        execution, neighbour = an_execution(1, last_seq=len(events)), an_execution(2, last_seq=9)
        written = [(execution.id, event) for event in events] + [(neighbour.id, event) for event in some_events(9)]
        await bench.write(new_executions=[execution, neighbour], events=written)

        async def unread(after: int, *seqs: int) -> list[int]:
            loaded = await bench.load(unread={execution.id: (after, seqs)})
            assert [event for event in events if event in loaded.unread[execution.id]] == loaded.unread[execution.id]
            return [event.seq for event in loaded.unread[execution.id]]

        assert await unread(0) == [2, 3, 4, 6, 8]
        assert await unread(4) == [6, 8]
        assert await unread(4, 2, 3) == [2, 3, 6, 8]
        assert await unread(8) == []

    async def test_a_new_family_is_read_as_it_was_written(self, open_store: OpenStore) -> None:
        """A child begins in the transaction in which its parent counts it."""
        bench = await Bench.opened(open_store)
        parent = an_execution(1)
        await bench.write(new_executions=[parent])
        parent = an_execution(1, open_children=1, last_seq=2)
        child = a_child(2, parent, 1)
        await bench.write(changed_executions={parent.id: parent}, new_executions=[child])

        assert await bench.store.executions(ORG, [parent.id, child.id]) == {parent.id: parent, child.id: child}

    async def test_changed_metadata_is_read_as_it_was_written(self, open_store: OpenStore) -> None:
        """Tags are added, changed and taken away, whole sets at a time, any number of times."""
        bench = await Bench.opened(open_store)
        await bench.write(new_executions=[an_execution(1, metadata={"a": "1", "b": "2"}), an_execution(2)])
        for tags in ({"a": "1", "b": "3", "c": ""}, {"c": "ü"}, {}, {"a": "1"}):
            changed = [an_execution(number, metadata=tags) for number in (1, 2)]
            by_id = {execution.id: execution for execution in changed}
            await bench.write(changed_executions=by_id, state_changed=set(by_id), metadata=by_id)

            assert await bench.store.executions(ORG, list(by_id)) == by_id
