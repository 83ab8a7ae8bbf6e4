"""Calls into one execution from outside: updates, queries, and what it shows of itself."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Raw

from holdfast.model.values import NULL, Failure


class RequestUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """Ask an open execution to change something and to answer.

    The same `update_id` again, for the same execution, is the same update: nothing is asked twice. Without one the
    engine makes it.
    """

    org: str
    workflow_execution_id: str
    update_name: str
    input: Raw = NULL
    update_id: str | None = None
    request_id: str | None = None


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


class UpdateOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Where an update stands. `workflow_execution_id` is where it was answered: a later run, if the first one continued
    as new before it had seen the request."""

    workflow_execution_id: str
    update_id: str
    status: UpdateStatus
    result: Raw = NULL
    failure: Failure | None = None


class QueryExecution(msgspec.Struct, frozen=True, kw_only=True):
    """Ask a program something. `as_of` is the event after which it is looked at; without, it has seen everything."""

    org: str
    workflow_execution_id: str
    query_name: str
    input: Raw = NULL
    has_input: bool = False
    as_of: int | None = None
