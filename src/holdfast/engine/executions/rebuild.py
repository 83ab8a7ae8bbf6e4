"""What reset, retry and fork share: a new execution that begins with another one's past."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from holdfast.contract.executions import ForkExecution, ResetExecution, RetryExecution, StartAnswer
from holdfast.engine.operation import Operation
from holdfast.engine.past import Past
from holdfast.engine.rules import children, rebuilding
from holdfast.engine.rules.look_backs import plan_look_back
from holdfast.engine.rules.starting import Beginning, already_running, open_execution
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import InvalidResetPoint, Unavailable
from holdfast.model.events import ChildStarted, HistoryEvent
from holdfast.model.executions import DEADLINE_NO, Execution
from holdfast.store.protocol import LoadPlan

Request = TypeVar("Request", bound=ResetExecution | ForkExecution | RetryExecution)


class Rebuild(Operation[Request, StartAnswer]):
    """`past` was read before the transaction. What has come since is loaded by it; where that is not enough the
    operation is refused as Unavailable and the past is read again. `token_hash` gives the hash of the token of a
    promise, by execution id and name."""

    __slots__ = ("past", "token_hash")
    ANSWER = StartAnswer

    def __init__(self, request: Request, past: Past, token_hash: Callable[[str, str], str]) -> None:
        super().__init__(request)
        self.past = past
        self.token_hash = token_hash

    def plan(self, plan: LoadPlan) -> None:
        past = self.past
        plan.executions.add(past.execution_id)
        plan.executions.update(past.last_runs.values())
        plan.children.update((past.execution_id, number) for number in past.unsettled)
        plan.timers.add((past.execution_id, DEADLINE_NO))
        plan.workflow_keys.add((self.request.org, past.workflow_id))
        for wait in past.prefix.waits.values():
            plan.numbering = True
            plan.topics.add((self.request.org, wait.key))
            if wait.since_at is not None:
                plan_look_back(plan, self.request.org, wait)
        for promise in past.prefix.promises.values():
            if promise.event_key is not None:
                plan.numbering = True
                plan.topics.add((self.request.org, promise.event_key))
        asked = plan.calls_after.get(past.execution_id, past.last_seq)
        plan.calls_after[past.execution_id] = min(asked, past.last_seq)

    def check_free(self, ws: Workspace, workflow_id: str, *, but: str = "") -> None:
        """Whether no open execution has the workflow id, but for the one that makes way."""
        running = open_execution(ws, self.request.org, workflow_id)
        if running is not None and running.id != but:
            raise already_running(running)

    def open_children(self, ws: Workspace) -> dict[int, Execution]:
        """Children of the past that are still at work."""
        past, found = self.past, dict[int, Execution]()
        for number, started in past.unsettled.items():
            last_run = past.last_runs.get(number)
            child_id = ws.loaded.children.get((past.execution_id, number), last_run)
            if child_id is None:
                raise _lost_child(past, number, started, _FIELDS[type(self.request)])
            child = ws.loaded.executions.get(child_id)
            if child is not None and child.is_open:
                found[number] = child
            elif child is None or number not in past.ends or child.successor is not None:
                raise _outdated(past, f"has a child ({number}) that has ended or was removed just now")
        return found

    def tail(self, ws: Workspace) -> list[HistoryEvent]:
        """What is known of that came after the past: what was read, and all that was given from outside since."""
        past = self.past
        since = [*ws.loaded.calls[past.execution_id], *ws.appended.get(past.execution_id, ())]
        return [*past.tail, *(event for event in since if event.seq > past.last_seq)]

    def carried(self, ws: Workspace, still_open: dict[int, Execution], *, calls: bool) -> list[HistoryEvent]:
        """What follows the past: answers to what it had asked for and, if wanted, the calls that came after it."""
        past, tail = self.past, self.tail(ws)
        found = rebuilding.answers(past.prefix, tail)
        if calls:
            last_seq = ws.loaded.executions[past.execution_id].last_seq
            if len(past.prefix.events) + len(tail) < last_seq and rebuilding.undecided(tail):
                raise _outdated(past, "may have refused an update just now")
            given = rebuilding.given(past.prefix, tail)
            found = sorted([*found, *rebuilding.calls(tail), *given], key=_seq)
        for number, last_run in past.last_runs.items():
            if number not in still_open:
                found.append(HistoryEvent(0, 0, children.outcome(number, last_run, past.ends[number])))
        return found

    def prefix_for(self, execution_id: str) -> rebuilding.Prefix:
        """The past as that of another execution."""
        return rebuilding.with_tokens(self.past.prefix, partial(self.token_hash, execution_id))

    def beginning(self, old: Execution, new_id: str, expires_at: int | None) -> Beginning:
        """As the old one, with the tags it had then."""
        return Beginning(
            org=old.org,
            kind=old.kind,
            version=old.version,
            execution_id=new_id,
            workflow_id=old.workflow_id,
            # Found by the first one's id, if that had no key of the caller's.
            key=True,
            queue=old.queue,
            priority=old.priority,
            metadata=self.past.prefix.metadata,
            expires_at=expires_at,
        )

    def deadline(self, ws: Workspace, *, anew: bool) -> int | None:
        """The old one's while it lies ahead, else as long again from now."""
        started, first = self.past.prefix.started, self.past.prefix.events[0]
        if started.expires_at is None:
            return None
        row = ws.loaded.timers.get((self.past.execution_id, DEADLINE_NO))
        expires_at = row.fire_at if row is not None else started.expires_at
        if not anew and expires_at > ws.now:
            return expires_at
        start_at = started.start_at or first.at
        return max(ws.now, start_at) + started.expires_at - start_at


_FIELDS: dict[type[Any], str] = {
    ResetExecution: "to_event",
    ForkExecution: "at_event",
    RetryExecution: "workflow_execution_id",
}
"""What says where the past ends."""


def _lost_child(past: Past, child_no: int, started: ChildStarted, field: str) -> InvalidResetPoint:
    seq = len(past.prefix.events)
    child = started.workflow_id or started.child_execution_id
    return InvalidResetPoint(
        f"at event {seq} execution {past.execution_id} waits for child {child_no} ({child}), which was removed by "
        "retention together with its end: nobody knows what came of it; go back to an event before its start",
        field=field,
        child_no=child_no,
        child_execution_id=started.child_execution_id,
    )


def _outdated(past: Past, why: str) -> Unavailable:
    """The past has to be read again."""
    return Unavailable(f"execution {past.execution_id} {why}: try again", outdated=past.execution_id)


def _seq(event: HistoryEvent) -> int:
    return event.seq
