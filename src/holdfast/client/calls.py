"""Queries and updates as an application calls them: by name or by the handler itself, with values in and out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, TypeVar

from msgspec import UNSET, structs

from holdfast import errors
from holdfast.client.following import call_open
from holdfast.contract.calls import GetUpdate, QueryExecution, RequestUpdate, UpdateOutcome, UpdateStatus
from holdfast.contract.execution_reads import GetState
from holdfast.contract.fields import FOREVER
from holdfast.contract.operation import Api
from holdfast.model.payloads import decode, encode
from holdfast.model.values import Failure
from holdfast.replay.definition import handler_definition

T = TypeVar("T")
Call = str | Callable[..., Any]
"""A query or update: its name, or the decorated method, which also says what type the answer has."""
WaitFor = Literal["completed", "accepted"]
NO_VALUE: Final[Any] = object()
"""Stands for a query without a value, which is not the same as a query with None."""


class UpdateHandle:
    """One update of one execution, whether or not it is done. Cheap: making one reads nothing."""

    __slots__ = ("_api", "_org", "_result_type", "_sequence", "id", "update_id")

    def __init__(
        self,
        api: Api,
        org: str,
        execution_id: str,
        update_id: str,
        *,
        result_type: Any = Any,
        sequence: int = 0,
    ) -> None:
        self._api = api
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
        return self._api.call(
            GetUpdate(
                org=self._org,
                workflow_execution_id=self.id,
                update_id=self.update_id,
                wait_for=wait_for,
                wait=0.0 if wait_for is UpdateStatus.REQUESTED else FOREVER,
                sequence=self._sequence,
            )
        )


class Calls:
    """What a client does for its handles."""

    __slots__ = ("_api", "_limit", "_org")

    def __init__(self, api: Api, org: str, payload_limit: int) -> None:
        self._api = api
        self._org = org
        self._limit = payload_limit

    async def query(
        self, execution_id: str, call: Call, value: Any, *, as_of: int | None, timeout: float | None, type_hint: Any
    ) -> Any:
        name, declared = _named(call, "query")
        request = QueryExecution(
            org=self._org,
            workflow_execution_id=execution_id,
            query_name=name,
            input=UNSET if value is NO_VALUE else encode(value, field="value", limit=self._limit),
            as_of=as_of,
        )
        answer = await within(self._api.call(request), timeout)
        return decode(answer.result, declared if type_hint is None else type_hint, field="result")

    async def request_update(self, execution_id: str, call: Call, value: Any, update_id: str | None) -> UpdateHandle:
        name, declared = _named(call, "update")
        request = RequestUpdate(
            org=self._org,
            workflow_execution_id=execution_id,
            update_name=name,
            input=encode(value, field="value", limit=self._limit),
            update_id=update_id,
            wait_for=UpdateStatus.REQUESTED,
        )
        requested = await call_open(
            lambda key: self._api.call(structs.replace(request, workflow_execution_id=key)), execution_id
        )
        return UpdateHandle(
            self._api,
            self._org,
            requested.workflow_execution_id,
            requested.update_id,
            result_type=declared,
            sequence=requested.update_event_sequence or 0,
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
        shown = await self._api.call(GetState(org=self._org, workflow_execution_id=execution_id, as_of=as_of))
        return {key: decode(value, field=f"state[{key!r}]") for key, value in shown.state.items()}


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
    handler = handler_definition(call)
    if handler is None or handler.role != role:
        raise errors.InvalidRequest(
            f"{call!r} is not {'an' if role == 'update' else 'a'} {role}: give its name, or a method decorated with "
            f"@{role}",
            field="name",
        )
    return handler.name, handler.answer_type
