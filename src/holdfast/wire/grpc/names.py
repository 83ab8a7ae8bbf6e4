"""Where a message says something in other words than the contract: names that were given before there was a table.

Messages and numbers never change, so these stay for ever; nothing is added to them.
"""

from __future__ import annotations

from typing import Final

SERVICE: Final = "WorkflowDispatch"
SERVICE_PATH: Final = f"/holdfast.v1.{SERVICE}"
KEYS: Final = ("idempotency_key", "request_id")
"""A message has one of these fields, or the idempotency key is in the metadata."""
ORG: Final = "org_id"
RECORDS: Final[dict[str, str]] = {
    "WorkflowInfo": "WorkflowExecution",
    "StandaloneTaskInfo": "StandaloneTask",
    "OutputChunk": "TaskOutputChunk",
    "Retry": "RetryPolicy",
}
"""Records whose message has another name."""
ATTRIBUTES: Final[dict[str, dict[str, str]]] = {
    "RetryPolicy": {"initial_interval_seconds": "initial_interval_s", "max_interval_seconds": "max_interval_s"},
    "ListWorkflowsRequest": {"statuses": "statuses", "workflow_kinds": "kinds"},
    "ListTasksRequest": {"statuses": "statuses"},
    "WorkflowExecution": {"last_event_sequence": "history_length"},
    "ListWorkflowsResponse": {"workflows": "items"},
    "ListTasksResponse": {"tasks": "items"},
    "GetResultRequest": {"wait_seconds": "wait"},
}
"""Message, its field, and the attribute of the struct."""


def message_of(record: str) -> str:
    return RECORDS.get(record, record)
