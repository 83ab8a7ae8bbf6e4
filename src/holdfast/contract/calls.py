"""Calls into the program of one execution: queries, updates."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Raw

from holdfast.contract.fields import After, EventNumber, Name, Payload, Wait, null
from holdfast.contract.history import EXECUTIONS_TAG
from holdfast.contract.operation import EXECUTION, GET, POST, Record, Request, operation
from holdfast.model.keys import Role
from holdfast.model.values import Failure


class UpdateTicket(msgspec.Struct, frozen=True):
    """The request is in the history, under this number."""

    workflow_execution_id: str
    update_id: str
    update_event_sequence: int


class UpdateStatus(StrEnum):
    """How far an update has got."""

    REQUESTED = "REQUESTED"
    ACCEPTED = "ACCEPTED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    REJECTED = "REJECTED"

    @property
    def is_final(self) -> bool:
        return self not in {UpdateStatus.REQUESTED, UpdateStatus.ACCEPTED}


class UpdateOutcome(Record, frozen=True, kw_only=True):
    """How far an update has got. REQUESTED and ACCEPTED are on the way; ask again for more.

    `workflow_execution_id` is where it was answered: a later run, if the first one continued as new before it had seen
    the request.
    """

    workflow_execution_id: str
    update_id: str
    status: UpdateStatus
    result: Raw = msgspec.field(default_factory=null)
    failure: Failure | None = None
    update_event_sequence: int | None = None


@operation(
    "update_workflow",
    POST,
    f"{EXECUTION}/updates",
    Role.WRITER,
    tag=EXECUTIONS_TAG,
    payload=True,
    waits=True,
    example={"update_name": "add_item", "input": {"item": "tea"}, "wait": 10},
)
class RequestUpdate(Request[UpdateOutcome], frozen=True, kw_only=True):
    """Let the program of an execution change something and answer.

    The same `update_id` again, for the same execution, is the same update: nothing is asked twice. Without one the
    engine makes it. `wait_for` says how far the update must have got before the answer.
    """

    workflow_execution_id: Name
    update_name: Name
    input: Payload = msgspec.field(default_factory=null)
    update_id: Name | None = None
    wait_for: UpdateStatus = UpdateStatus.COMPLETED
    wait: Wait = 0.0
    request_id: Name | None = None


@operation("get_update", GET, f"{EXECUTION}/updates/{{update_id}}", Role.READER, tag=EXECUTIONS_TAG, waits=True)
class GetUpdate(Request[UpdateOutcome], frozen=True, kw_only=True):
    """How far an update has got; with `wait`, as soon as it has got as far as `wait_for`.

    `sequence` is the number of the request in the history, if it is known: less has to be read.
    """

    workflow_execution_id: Name
    update_id: Name
    wait_for: UpdateStatus = UpdateStatus.COMPLETED
    wait: Wait = 0.0
    sequence: After = 0

    def is_answered_by(self, answer: UpdateOutcome) -> bool:
        return answer.status.is_final or self.wait_for in {UpdateStatus.REQUESTED, answer.status}


class QueryResult(Record, frozen=True, kw_only=True):
    result: Raw


@operation(
    "query_workflow",
    POST,
    f"{EXECUTION}/query",
    Role.READER,
    tag=EXECUTIONS_TAG,
    payload=True,
    waits=True,
    example={"query_name": "progress"},
)
class QueryExecution(Request[QueryResult], frozen=True, kw_only=True):
    """Ask the program of an execution something.

    Leave `input` out for a query that takes none: null is a value. `as_of` is the event after which the program is
    looked at; without, it has seen everything.
    """

    workflow_execution_id: Name
    query_name: Name
    input: Payload | msgspec.UnsetType = msgspec.UNSET
    as_of: EventNumber | None = None
