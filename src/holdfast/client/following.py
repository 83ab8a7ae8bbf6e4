"""From an execution that is closed to the one that goes on in its place, after a reset, retry or continue-as-new."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from msgspec import structs

from holdfast.contract.execution_reads import GetResult, WorkflowResult
from holdfast.contract.executions import CancelExecution, Changed, SignalWorkflow, TerminateExecution
from holdfast.contract.fields import FOREVER
from holdfast.contract.operation import Api
from holdfast.errors import ExecutionClosed

Answer = TypeVar("Answer")

LONGEST: Final = 10_000
"""A chain of successors is never followed further: a loop among them, however made, must end."""


async def outcome_of(api: Api, org: str, execution_id: str) -> WorkflowResult:
    """How the workflow ended, in whichever run it did: waits for that."""
    ended = await api.call(GetResult(org=org, workflow_execution_id=execution_id, wait=FOREVER))
    for _ in range(LONGEST):
        if ended.successor is None:
            break
        ended = await api.call(GetResult(org=org, workflow_execution_id=ended.successor, wait=FOREVER))
    return ended


async def call_open(call: Callable[[str], Awaitable[Answer]], execution_id: str) -> Answer:
    """Call the execution; if it is closed and another goes on in its place, call that one."""
    for _ in range(LONGEST):
        try:
            return await call(execution_id)
        except ExecutionClosed as refusal:
            successor: Any = refusal.details.get("successor")
            if successor is None:
                raise
            execution_id = successor
    return await call(execution_id)


async def change_open(api: Api, request: CancelExecution | TerminateExecution) -> bool:
    """The same for calls that answer whether they have changed anything."""
    answer: Changed = await api.call(request)
    for _ in range(LONGEST):
        if answer.changed or answer.successor is None:
            break
        answer = await api.call(structs.replace(request, workflow_execution_id=answer.successor))
    return answer.changed


def sent_to(request: SignalWorkflow, execution_id: str) -> SignalWorkflow:
    """The same call for the one that goes on in its place."""
    if execution_id == request.workflow_execution_id:
        return request
    return structs.replace(request, workflow_execution_id=execution_id, addressed_to=request.workflow_execution_id)
