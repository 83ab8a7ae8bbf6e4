"""Records that calls give and nobody makes: for annotations.

Made by `make generate` from the table in `holdfast/__init__.py`; do not edit.
"""

from holdfast.client.explaining import WorkflowExplanation
from holdfast.client.mailbox import DeadLetter, Mailbox, MailboxEntry
from holdfast.client.task_output import TaskChunk, TaskOutput, TaskUpdate
from holdfast.client.views import WorkflowPage, WorkflowView
from holdfast.contract.executions import Redelivered, SignalResponse, SignalWithStartResponse
from holdfast.contract.explanations import EventExplanation
from holdfast.contract.keys import AuditEntry, CreatedKey, KeyInfo, OrgInfo
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
from holdfast.model.executions import TaskRow, TimerRow
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
    "HistoryEvent",
    "KeyInfo",
    "Mailbox",
    "MailboxEntry",
    "OrgInfo",
    "PauseInfo",
    "Payload",
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
    "TaskRow",
    "TaskUpdate",
    "TimerRow",
    "Wait",
    "WaitExplanation",
    "WaitInfo",
    "WorkerInfo",
    "WorkflowExplanation",
    "WorkflowPage",
    "WorkflowView",
]
