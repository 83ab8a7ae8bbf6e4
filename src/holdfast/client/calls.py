"""Queries and updates as an application calls them: by name or by the handler itself, with values in and out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import FunctionType
from typing import Any, Final, Literal, TypeVar

from msgspec import structs

from holdfast import errors
from holdfast.client.successors import call_open_successor
from holdfast.contract.calls import QueryExecution, RequestUpdate, UpdateOutcome, UpdateStatus, UpdateTicket
from holdfast.contract.executions import Executions
from holdfast.frontends.python.handlers import mark_of
from holdfast.frontends.python.introspection import context_type
from holdfast.model.payloads import decode, encode
from holdfast.model.values import NULL, Failure

T = TypeVar("T")
Call = str | Callable[..., Any]
"""A query or update: its name, or the decorated method, which also says what type the answer has."""
WaitFor = Literal["completed", "accepted"]
NO_VALUE: Final[Any] = object()
"""Stands for a query without a value, which is not the same as a query with None."""


class UpdateHandle:
    """One update of one execution, whether or not it is done. Cheap: making one reads nothing."""

    __slots__ = ("_executions", "_org", "_result_type", "_sequence", "id", "update_id")

    def __init__(
        self,
        executions: Executions,
        org: str,
        execution_id: str,
        update_id: str,
        *,
        result_type: Any = Any,
        sequence: int = 0,
    ) -> None:
        self._executions = executions
        self._org = org
        self._result_type = result_type
        self._sequence = sequence
        self.id = execution_id
        self.update_id = update_id

    def __repr__(self) -> str:
        return f"UpdateHandle({self.id!r}, update_id={self.update_id!r})"

    async def result(self, *, timeout: float | None = None, type_hint: Any = None) -> Any:
        """Wait until it is done and give its result.

        Raises UpdateRejected or UpdateFailed if there is none, TimeoutError if it takes longer than `timeout` seconds;
        the update goes on.
        """
        outcome = await within(self._outcome(UpdateStatus.COMPLETED), timeout)
        hint = self._result_type if type_hint is None else type_hint
        return decode(checked(outcome).result, hint, field="result")

    async def status(self) -> UpdateStatus:
        """How far it has got. An update that its execution closed over is FAILED."""
        return (await self._outcome(UpdateStatus.REQUESTED)).status

    async def accepted(self) -> None:
        """Wait until the workflow has accepted it. Raises UpdateRejected if not, UpdateFailed if it closed before."""
        outcome = await self._outcome(UpdateStatus.ACCEPTED)
        if outcome.status is UpdateStatus.REJECTED or _closed_first(outcome.failure):
            checked(outcome)

    def _outcome(self, wait_for: UpdateStatus) -> Awaitable[UpdateOutcome]:
        ticket = UpdateTicket(self.id, self.update_id, self._sequence)
        return self._executions.update_outcome(self._org, ticket, wait_for)


class Calls:
    """What a client does for its handles."""

    __slots__ = ("_executions", "_limit", "_org")

    def __init__(self, executions: Executions, org: str, payload_limit: int) -> None:
        self._executions = executions
        self._org = org
        self._limit = payload_limit

    async def query(
        self, execution_id: str, call: Call, value: Any, *, as_of: int | None, timeout: float | None, type_hint: Any
    ) -> Any:
        name, declared = _named(call, "query")
        has_input = value is not NO_VALUE
        request = QueryExecution(
            org=self._org,
            workflow_execution_id=execution_id,
            query_name=name,
            input=encode(value, field="value", limit=self._limit) if has_input else NULL,
            has_input=has_input,
            as_of=as_of,
        )
        answer = await within(self._executions.query(request), timeout)
        return decode(answer, declared if type_hint is None else type_hint, field="result")

    async def request_update(self, execution_id: str, call: Call, value: Any, update_id: str | None) -> UpdateHandle:
        name, declared = _named(call, "update")
        request = RequestUpdate(
            org=self._org,
            workflow_execution_id=execution_id,
            update_name=name,
            input=encode(value, field="value", limit=self._limit),
            update_id=update_id,
        )
        ticket = await call_open_successor(
            lambda key: self._executions.request_update(structs.replace(request, workflow_execution_id=key)),
            execution_id,
        )
        return UpdateHandle(
            self._executions,
            self._org,
            ticket.workflow_execution_id,
            ticket.update_id,
            result_type=declared,
            sequence=ticket.update_event_sequence,
        )

    async def start_update(self, execution_id: str, call: Call, value: Any, update_id: str | None) -> UpdateHandle:
        handle = await self.request_update(execution_id, call, value, update_id)
        await handle.accepted()
        return handle

    async def update(
        self, execution_id: str, call: Call, value: Any, *, update_id: str | None, wait_for: WaitFor, type_hint: Any
    ) -> Any:
        if wait_for not in ("completed", "accepted"):
            raise errors.InvalidRequest(f"wait_for is 'completed' or 'accepted', not {wait_for!r}", field="wait_for")
        if wait_for == "accepted":
            await self.start_update(execution_id, call, value, update_id)
            return None
        handle = await self.request_update(execution_id, call, value, update_id)
        return await handle.result(type_hint=type_hint)

    async def state(self, execution_id: str, as_of: int | None) -> dict[str, Any]:
        shown = await self._executions.state(self._org, execution_id, as_of)
        return {key: decode(value, field=f"state[{key!r}]") for key, value in shown.items()}


async def within(waiting: Awaitable[T], timeout: float | None) -> T:
    if timeout is None:
        return await waiting
    async with asyncio.timeout(timeout):
        return await waiting


def checked(outcome: UpdateOutcome) -> UpdateOutcome:
    """The outcome of a completed update; for another, the error that says how it ended."""
    failure = outcome.failure
    if failure is None:
        return outcome
    details = {"execution_id": outcome.workflow_execution_id, "update_id": outcome.update_id}
    text = failure.message if _closed_first(failure) else f"{failure.type}: {failure.message}"
    cls = errors.UpdateRejected if outcome.status is UpdateStatus.REJECTED else errors.UpdateFailed
    raise cls(text, error_type=failure.type, traceback=failure.traceback, **details)


def _closed_first(failure: Failure | None) -> bool:
    return failure is not None and failure.code == errors.ExecutionClosed.code


def _named(call: Call, role: str) -> tuple[str, Any]:
    """The name of a query or update, and the type its handler declares for the answer."""
    if isinstance(call, str):
        return call, Any
    mark = mark_of(call)
    if mark is None or mark.role != role:
        raise errors.InvalidRequest(
            f"{call!r} is not {'an' if role == 'update' else 'a'} {role}: give its name, or a method decorated with "
            f"@{role}",
            field="name",
        )
    return mark.name, context_type(mark.fn, "return", {}) if isinstance(mark.fn, FunctionType) else Any
