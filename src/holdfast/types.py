"""Records that calls give and nobody makes: for annotations.

Made by `make generate` from the table in `holdfast/__init__.py`; do not edit.
"""

from holdfast.client.task_output import TaskChunk, TaskOutput, TaskUpdate
from holdfast.contract.execution_reads import ExecutionInfo, PendingTask, PendingTimer, WaitingFor, WorkflowPage
from holdfast.contract.executions import SignalResponse, SignalWithStartResponse
from holdfast.contract.explanations import EventExplanation, WorkflowExplanation
from holdfast.contract.keys import AuditEntry, CreatedKey, KeyInfo, OrgInfo
from holdfast.contract.mailboxes import DeadLetter, Mailbox, MailboxEntry, Redelivered
from holdfast.contract.messages import (
    BroadcastResult,
    EventInfo,
    EventKeyInfo,
    PromiseInfo,
    PublishResult,
    SendResult,
    SettledPromise,
    WaitInfo,
)
from holdfast.contract.queues import PauseInfo, QueueInfo, WorkerInfo
from holdfast.contract.tasks import StandaloneTaskInfo, TaskPage
from holdfast.contract.upkeep import RecoveryReport
from holdfast.explaining.events import WaitExplanation
from holdfast.model.events import EventBody, HistoryEvent
from holdfast.model.values import Payload, Wait

__all__ = [
    "AuditEntry",
    "BroadcastResult",
    "CreatedKey",
    "DeadLetter",
    "EventBody",
    "EventExplanation",
    "EventInfo",
    "EventKeyInfo",
    "ExecutionInfo",
    "HistoryEvent",
    "KeyInfo",
    "Mailbox",
    "MailboxEntry",
    "OrgInfo",
    "PauseInfo",
    "Payload",
    "PendingTask",
    "PendingTimer",
    "PromiseInfo",
    "PublishResult",
    "QueueInfo",
    "RecoveryReport",
    "Redelivered",
    "SendResult",
    "SettledPromise",
    "SignalResponse",
    "SignalWithStartResponse",
    "StandaloneTaskInfo",
    "TaskChunk",
    "TaskOutput",
    "TaskPage",
    "TaskUpdate",
    "Wait",
    "WaitExplanation",
    "WaitInfo",
    "WaitingFor",
    "WorkerInfo",
    "WorkflowExplanation",
    "WorkflowPage",
]
