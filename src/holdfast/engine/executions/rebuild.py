"""What reset, retry and fork share: a new execution that begins with another one's past."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from holdfast.contract.executions import ForkExecution, ResetExecution, RetryExecution, StartAnswer
from holdfast.engine.operation import Operation
from holdfast.engine.reset_source import ResetSource
from holdfast.engine.rules import children, resets
from holdfast.engine.rules.retained_events import plan_look_back
from holdfast.engine.rules.starts import NewExecution, already_running, open_execution
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import InvalidResetPoint, Unavailable
from holdfast.model.events import ChildStarted, HistoryEvent
from holdfast.model.executions import DEADLINE_NO, Execution
from holdfast.store.protocol import LoadPlan

Request = TypeVar("Request", bound=ResetExecution | ForkExecution | RetryExecution)


class Rebuild(Operation[Request, StartAnswer]):
    """`source` was read before the transaction. What has come since is loaded by it; where that is not enough the
    operation is refused as Unavailable and the past is read again. `token_hash` gives the hash of the token of a
    promise, by execution id and name."""

    __slots__ = ("source", "token_hash")
    ANSWER = StartAnswer

    def __init__(self, request: Request, source: ResetSource, token_hash: Callable[[str, str], str]) -> None:
        super().__init__(request)
        self.source = source
        self.token_hash = token_hash

    def plan(self, plan: LoadPlan) -> None:
        source = self.source
        plan.executions.add(source.execution_id)
        plan.executions.update(source.last_runs.values())
        plan.children.update((source.execution_id, number) for number in source.unsettled)
        plan.timers.add((source.execution_id, DEADLINE_NO))
        plan.workflow_keys.add((self.request.org, source.workflow_id))
        for wait in source.prefix.waits.values():
            plan.numbering = True
            plan.topics.add((self.request.org, wait.key))
            if wait.since_at is not None:
                plan_look_back(plan, self.request.org, wait)
        for promise in source.prefix.promises.values():
            if promise.event_key is not None:
                plan.numbering = True
                plan.topics.add((self.request.org, promise.event_key))
        asked = plan.calls_after.get(source.execution_id, source.last_seq)
        plan.calls_after[source.execution_id] = min(asked, source.last_seq)

    def check_free(self, uow: UnitOfWork, workflow_id: str, *, but: str = "") -> None:
        """Whether no open execution has the workflow id, but for the one that makes way."""
        running = open_execution(uow, self.request.org, workflow_id)
        if running is not None and running.id != but:
            raise already_running(running)

    def open_children(self, uow: UnitOfWork) -> dict[int, Execution]:
        """Children of the past that are still at work."""
        source, found = self.source, dict[int, Execution]()
        for number, started in source.unsettled.items():
            last_run = source.last_runs.get(number)
            child_id = uow.loaded.children.get((source.execution_id, number), last_run)
            if child_id is None:
                raise _lost_child(source, number, started, _FIELDS[type(self.request)])
            child = uow.loaded.executions.get(child_id)
            if child is not None and child.is_open:
                found[number] = child
            elif child is None or number not in source.ends or child.successor is not None:
                raise _outdated(source, f"has a child ({number}) that has ended or was removed just now")
        return found

    def tail(self, uow: UnitOfWork) -> list[HistoryEvent]:
        """What is known of that came after the past: what was read, and all that was given from outside since."""
        source = self.source
        since = [*uow.loaded.calls[source.execution_id], *uow.appended.get(source.execution_id, ())]
        return [*source.tail, *(event for event in since if event.seq > source.last_seq)]

    def carried(self, uow: UnitOfWork, still_open: dict[int, Execution], *, calls: bool) -> list[HistoryEvent]:
        """What follows the past: answers to what it had asked for and, if wanted, the calls that came after it."""
        source, tail = self.source, self.tail(uow)
        found = resets.answers(source.prefix, tail)
        if calls:
            last_seq = uow.loaded.executions[source.execution_id].last_seq
            if len(source.prefix.events) + len(tail) < last_seq and resets.undecided(tail):
                raise _outdated(source, "may have refused an update just now")
            given = resets.given(source.prefix, tail)
            found = sorted([*found, *resets.calls(tail), *given], key=_seq)
        for number, last_run in source.last_runs.items():
            if number not in still_open:
                found.append(HistoryEvent(0, 0, children.outcome(number, last_run, source.ends[number])))
        return found

    def prefix_for(self, execution_id: str) -> resets.Prefix:
        """The past as that of another execution."""
        return resets.with_tokens(self.source.prefix, partial(self.token_hash, execution_id))

    def new_execution(self, old: Execution, new_id: str, expires_at: int | None) -> NewExecution:
        """As the old one, with the tags it had then."""
        return NewExecution(
            org=old.org,
            kind=old.kind,
            version=old.version,
            execution_id=new_id,
            workflow_id=old.workflow_id,
            # Found by the first one's id, if that had no key of the caller's.
            key=True,
            queue=old.queue,
            priority=old.priority,
            metadata=self.source.prefix.metadata,
            expires_at=expires_at,
        )

    def deadline(self, uow: UnitOfWork, *, anew: bool) -> int | None:
        """The old one's while it lies ahead, else as long again from now."""
        started, first = self.source.prefix.started, self.source.prefix.events[0]
        if started.expires_at is None:
            return None
        row = uow.loaded.timers.get((self.source.execution_id, DEADLINE_NO))
        expires_at = row.fire_at if row is not None else started.expires_at
        if not anew and expires_at > uow.now:
            return expires_at
        start_at = started.start_at or first.at
        return max(uow.now, start_at) + started.expires_at - start_at


_FIELDS: dict[type[Any], str] = {
    ResetExecution: "to_event",
    ForkExecution: "at_event",
    RetryExecution: "workflow_execution_id",
}
"""What says where the past ends."""


def _lost_child(source: ResetSource, child_no: int, started: ChildStarted, field: str) -> InvalidResetPoint:
    seq = len(source.prefix.events)
    child = started.workflow_id or started.child_execution_id
    return InvalidResetPoint(
        f"at event {seq} execution {source.execution_id} waits for child {child_no} ({child}), which was removed by "
        "retention together with its end: nobody knows what came of it; go back to an event before its start",
        field=field,
        child_no=child_no,
        child_execution_id=started.child_execution_id,
    )


def _outdated(source: ResetSource, why: str) -> Unavailable:
    """The past has to be read again."""
    return Unavailable(f"execution {source.execution_id} {why}: try again", outdated=source.execution_id)


def _seq(event: HistoryEvent) -> int:
    return event.seq
