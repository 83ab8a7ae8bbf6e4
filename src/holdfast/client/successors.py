"""From an execution that is closed to the one that goes on in its place, after a reset, retry or continue-as-new."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from msgspec import structs

from holdfast.contract import executions as ex
from holdfast.contract.executions import Changed, Executions, Outcome
from holdfast.errors import ExecutionClosed
from holdfast.model import events as e

Answer = TypeVar("Answer")
Request = TypeVar("Request", ex.CancelExecution, ex.TerminateExecution)

LONGEST: Final = 10_000
"""A chain of successors is never followed further: a loop among them, however made, must end."""


async def outcome_of(executions: Executions, org: str, execution_id: str) -> Outcome:
    """How the workflow ended, in whichever run it did: waits for that."""
    outcome = await executions.outcome(org, execution_id)
    for _ in range(LONGEST):
        successor = successor_of(outcome.last_event.body)
        if successor is None:
            break
        outcome = await executions.outcome(org, successor)
    return outcome


def successor_of(end: e.EventBody) -> str | None:
    match end:
        case e.WorkflowContinued():
            return end.new_execution_id
        case e.WorkflowTerminated():
            return end.successor
    return None


async def call_open_successor(call: Callable[[str], Awaitable[Answer]], execution_id: str) -> Answer:
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


async def change_open_successor(call: Callable[[str], Awaitable[Changed]], execution_id: str) -> bool:
    """The same for calls that answer whether they have changed anything."""
    answer = await call(execution_id)
    for _ in range(LONGEST):
        if answer.changed or answer.successor is None:
            break
        answer = await call(answer.successor)
    return answer.changed


def redirect_signal(request: ex.SignalWorkflow, execution_id: str) -> ex.SignalWorkflow:
    """The same call for the one that goes on in its place."""
    if execution_id == request.workflow_execution_id:
        return request
    return structs.replace(request, workflow_execution_id=execution_id, addressed_to=request.workflow_execution_id)


def redirect(request: Request, execution_id: str) -> Request:
    return structs.replace(request, workflow_execution_id=execution_id)
