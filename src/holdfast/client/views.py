"""What callers see of how an execution ended: its result, or an error."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from holdfast import errors
from holdfast.contract.execution_reads import WorkflowResult
from holdfast.model import events as e
from holdfast.model.payloads import decode
from holdfast.model.values import MICRO


def instant(at: int) -> datetime:
    return datetime.fromtimestamp(at / MICRO, UTC)


def microseconds(when: datetime, field: str) -> int:
    if when.tzinfo is None:
        raise errors.InvalidRequest(f"{field} needs a time zone: {when!r}", field=field)
    return int(when.timestamp() * MICRO)


def result_of(ended: WorkflowResult, result_type: Any) -> Any:
    """The result of a closed execution, or the error that says how it ended."""
    assert ended.last_event is not None, "it is closed"
    if ended.last_event.type == e.WorkflowCompleted.TYPE:
        return decode(ended.result, result_type, field="result")
    body = ended.last_event.event.body
    match body:
        case e.WorkflowFailed():
            failure = body.failure
            raise errors.WorkflowFailed(
                f"{failure.type}: {failure.message}",
                error_type=failure.type,
                traceback=failure.traceback,
                failure=failure,
            )
        case e.WorkflowCancelled():
            raise errors.WorkflowCancelled(f"the workflow was cancelled{_because(body.reason)}", reason=body.reason)
        case e.WorkflowTerminated():
            raise errors.WorkflowTerminated(f"the workflow was terminated{_because(body.reason)}", reason=body.reason)
        case e.WorkflowTimedOut():
            over = instant(body.expires_at)
            raise errors.WorkflowTimedOut(
                f"the workflow was not done within its execution timeout, which ended at {over.isoformat()}",
                expires_at=over,
            )
    raise errors.ExecutionOutcome(f"the execution ended with {body.TYPE}")


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
