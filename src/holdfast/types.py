"""Records that calls give and nobody makes: for annotations.

Made by `make generate` from the table in `holdfast/__init__.py`; do not edit.
"""

from holdfast.client.broadcasts import Broadcast, MessageSent
from holdfast.client.events import DeadEventView, EventKeyView, EventView, Published, WaitView
from holdfast.client.explaining import EventExplanation, WaitExplanation, WorkflowExplanation
from holdfast.client.mailbox import DeadLetter, Mailbox, MailboxEntry
from holdfast.client.promises import PromiseView, SettledPromise
from holdfast.client.task_output import TaskChunk, TaskOutput, TaskUpdate
from holdfast.client.views import WorkflowPage, WorkflowView
from holdfast.contract.executions import Redelivered, SignalResponse, SignalWithStartResponse
from holdfast.contract.keys import AuditEntry, CreatedKey, KeyInfo, OrgInfo
from holdfast.contract.queues import PauseInfo, QueueInfo, WorkerInfo
from holdfast.contract.tasks import StandaloneTaskInfo, TaskPage
from holdfast.contract.upkeep import RecoveryReport
from holdfast.model.events import EventBody, HistoryEvent
from holdfast.model.executions import TaskRow, TimerRow
from holdfast.model.values import Payload, Wait

__all__ = [
    "AuditEntry",
    "Broadcast",
    "CreatedKey",
    "DeadEventView",
    "DeadLetter",
    "EventBody",
    "EventExplanation",
    "EventKeyView",
    "EventView",
    "HistoryEvent",
    "KeyInfo",
    "Mailbox",
    "MailboxEntry",
    "MessageSent",
    "OrgInfo",
    "PauseInfo",
    "Payload",
    "PromiseView",
    "Published",
    "QueueInfo",
    "RecoveryReport",
    "Redelivered",
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
    "WaitView",
    "WorkerInfo",
    "WorkflowExplanation",
    "WorkflowPage",
    "WorkflowView",
]
