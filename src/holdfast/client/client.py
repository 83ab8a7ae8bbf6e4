"""`Client`: the contract in the words of an application."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.client.calls import NO_VALUE, Call, Calls, WaitFor, within
from holdfast.client.events import Events
from holdfast.client.following import call_open, change_open, sent_to
from holdfast.client.handles import WorkflowHandle
from holdfast.client.lists import Lists
from holdfast.client.mailbox import Mailboxes
from holdfast.client.operating import Operating
from holdfast.client.options import Workflow, beginning_at, choice, resolved, tags, timeout_of
from holdfast.client.portal import Portal
from holdfast.client.promises import Promises, key_of, ttl_of
from holdfast.client.task_output import TaskOutputs
from holdfast.client.tasks import StandaloneTasks
from holdfast.contract import executions as ex
from holdfast.contract.execution_reads import FindWorkflow
from holdfast.contract.mailboxes import DeadLetter, Redelivered
from holdfast.contract.operation import Api
from holdfast.model.durations import Duration
from holdfast.model.payloads import DEFAULT_LIMIT_BYTES, encode
from holdfast.model.values import IfClosed, IfRunning

if TYPE_CHECKING:
    from holdfast.client.remote.connecting import Connecting
    from holdfast.client.sync import SyncClient


class Client(Lists, StandaloneTasks, Promises, Events, Operating, TaskOutputs):
    """Starts, signals and looks at the workflows of one org. Where the engine runs makes no difference to it."""

    def __init__(
        self,
        api: Api,
        org: str,
        *,
        payload_limit: int = DEFAULT_LIMIT_BYTES,
    ) -> None:
        self.api = api
        self.org = org
        self.portal = Portal()
        """How other threads reach the event loop; the engine opens it."""
        self.calls = Calls(api, org, payload_limit)
        self.mailboxes = Mailboxes(api, org)
        self._limit = payload_limit
        self._sync: SyncClient | None = None
        self._on_close: Callable[[], Awaitable[None]] | None = None

    @classmethod
    def connect(
        cls, url: str, *, api_key: str | None = None, org: str | None = None, tls: ssl.SSLContext | None = None
    ) -> Connecting:
        """A client of a server: `async with Client.connect("http://host:port", api_key=...) as client`, or `await` it
        and `close()` it. The key decides the org; `org` counts only where a server needs no keys."""
        from holdfast.client.remote.connecting import Connecting  # noqa: PLC0415 - most clients are in process

        return Connecting(cls, url, api_key, org, tls)

    async def close(self) -> None:
        """Let go of the server. The client of an Engine ends with it."""
        if self._on_close is not None:
            self.portal.close()
            await self._on_close()

    @property
    def sync(self) -> SyncClient:
        """The same methods, blocking: for every thread but the one that runs the engine's event loop."""
        if self._sync is None:
            from holdfast.client.sync import SyncClient  # noqa: PLC0415 - it is generated from this module

            self._sync = SyncClient(self.portal, self)
        return self._sync

    async def start_workflow(
        self,
        workflow: Workflow,
        input: Any = None,
        *,
        workflow_id: str | None = None,
        queue: str = "default",
        priority: int = 0,
        version: str | None = None,
        metadata: Mapping[str, str] | None = None,
        execution_timeout: Duration | None = None,
        start_at: datetime | None = None,
        if_running: IfRunning | str = IfRunning.USE_EXISTING,
        if_closed: IfClosed | str = IfClosed.ALLOW,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
        request_id: str | None = None,
        using: Any = None,
    ) -> WorkflowHandle:
        """Start a workflow. With the workflow id of an open execution, that one is found instead of starting another.

        `if_running` may say otherwise ("fail", "terminate": the open one ends), as `if_closed` may for a workflow id
        whose last execution is closed ("allow_if_failed", "reject"). It begins at `start_at`, if that lies ahead, and
        is ended when `execution_timeout` has passed since then.

        `idempotency_key` (or `request_id`, which is the same) makes a retry of the same call harmless, even if its
        first answer was lost: until `idempotency_key_ttl`, by default a day, has passed since the execution was closed.
        The handle says whether the key was new. `using` is your own open connection to the engine's database: the
        workflow is started if your transaction commits, and never was if it does not.
        """
        kind, declared, result_type, limit_s = resolved(workflow)
        answer = await self.api.call(
            ex.StartWorkflow(
                org=self.org,
                kind=kind,
                version=version or declared,
                workflow_id=workflow_id,
                input=encode(input, field="input", limit=self._limit),
                queue=queue,
                priority=priority,
                metadata=tags(metadata),
                execution_timeout_s=timeout_of(execution_timeout, limit_s),
                start_at=beginning_at(start_at),
                if_running=choice(IfRunning, if_running, "if_running"),
                if_closed=choice(IfClosed, if_closed, "if_closed"),
                ttl_s=ttl_of(idempotency_key_ttl),
                request_id=key_of(idempotency_key, request_id),
            ),
            using,
        )
        return self._handle(answer, result_type)

    async def signal_workflow(
        self,
        workflow_execution_id: str,
        signal_name: str,
        signal_value: Any = None,
        *,
        request_id: str | None = None,
        using: Any = None,
    ) -> ex.SignalResponse:
        """Send a signal to an open execution, or to the one that goes on in its place: queued, delivered in order,
        never lost. `using`: as part of your own transaction, see `start_workflow`."""
        request = ex.SignalWorkflow(
            org=self.org,
            workflow_execution_id=workflow_execution_id,
            signal_name=signal_name,
            signal_value=encode(signal_value, field="signal_value", limit=self._limit),
            request_id=request_id,
        )
        return await call_open(lambda key: self.api.call(sent_to(request, key), using), workflow_execution_id)

    async def signal_with_start_workflow(
        self,
        workflow_id: str,
        workflow: Workflow,
        workflow_input: Any = None,
        *,
        signal_name: str,
        signal_value: Any = None,
        queue: str | None = None,
        priority: int = 0,
        version: str | None = None,
        metadata: Mapping[str, str] | None = None,
        execution_timeout: Duration | None = None,
        start_at: datetime | None = None,
        if_closed: IfClosed | str = IfClosed.ALLOW,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
        request_id: str | None = None,
        using: Any = None,
    ) -> ex.SignalWithStartResponse:
        """Signal the open execution of a workflow id, starting it first if there is none. One atomic step.

        `execution_timeout`, `start_at` and `if_closed` are for the start, as in `start_workflow`. `using`: as part of
        your own transaction, see there.
        """
        kind, declared, _, limit_s = resolved(workflow)
        return await self.api.call(
            ex.SignalWithStart(
                org=self.org,
                workflow_id=workflow_id,
                kind=kind,
                version=version or declared,
                input=encode(workflow_input, field="workflow_input", limit=self._limit),
                queue="default" if queue is None else queue,
                priority=priority,
                metadata=tags(metadata),
                execution_timeout_s=timeout_of(execution_timeout, limit_s),
                start_at=beginning_at(start_at),
                if_closed=choice(IfClosed, if_closed, "if_closed"),
                signal_name=signal_name,
                signal_value=encode(signal_value, field="signal_value", limit=self._limit),
                ttl_s=ttl_of(idempotency_key_ttl),
                request_id=key_of(idempotency_key, request_id),
            ),
            using,
        )

    async def query_workflow(
        self,
        workflow_execution_id: str,
        query: Call,
        value: Any = NO_VALUE,
        *,
        as_of: int | None = None,
        timeout: float | None = None,
        type_hint: Any = None,
    ) -> Any:
        """Ask the program of an execution something. See `WorkflowHandle.query`."""
        return await self.calls.query(
            workflow_execution_id, query, value, as_of=as_of, timeout=timeout, type_hint=type_hint
        )

    async def update_workflow(
        self,
        workflow_execution_id: str,
        update: Call,
        value: Any = None,
        *,
        update_id: str | None = None,
        wait_for: WaitFor = "completed",
        timeout: float | None = None,
        type_hint: Any = None,
    ) -> Any:
        """Let the program of an execution change something and answer. See `WorkflowHandle.update`."""
        called = self.calls.update(
            workflow_execution_id, update, value, update_id=update_id, wait_for=wait_for, type_hint=type_hint
        )
        return await within(called, timeout)

    def workflow(self, workflow_execution_id: str, workflow: Workflow | None = None) -> WorkflowHandle:
        """A handle on an execution by its id. Give the workflow to get its result in its declared type."""
        result_type = Any if workflow is None else resolved(workflow)[2]
        return WorkflowHandle(self, workflow_execution_id, None, result_type)

    async def find_workflow(self, workflow_id: str, workflow: Workflow | None = None) -> WorkflowHandle:
        """The open execution of a workflow id, or the last closed one."""
        found = await self.api.call(FindWorkflow(org=self.org, workflow_id=workflow_id))
        result_type = Any if workflow is None else resolved(workflow)[2]
        return WorkflowHandle(self, found.workflow_execution_id, found.workflow_id, result_type)

    async def cancel_workflow(self, workflow_execution_id: str, reason: str = "") -> bool:
        request = ex.CancelExecution(org=self.org, workflow_execution_id=workflow_execution_id, reason=reason)
        return await change_open(self.api, request)

    async def terminate_workflow(self, workflow_execution_id: str, reason: str = "") -> bool:
        request = ex.TerminateExecution(org=self.org, workflow_execution_id=workflow_execution_id, reason=reason)
        return await change_open(self.api, request)

    async def reset_workflow(
        self,
        workflow_execution_id: str,
        to_event: int,
        *,
        reason: str = "",
        reapply_signals: bool = True,
        request_id: str | None = None,
    ) -> WorkflowHandle:
        """Go on from an event of its history as if nothing after it had happened, in a new execution with the same
        workflow id; an open execution is terminated for it.

        The event must be one where a turn ends; InvalidResetPoint names the nearest. What was started before it and
        not finished is run again; children are kept; signals that came after it are received again, unless
        `reapply_signals` is False.
        """
        answer = await self.api.call(
            ex.ResetExecution(
                org=self.org,
                workflow_execution_id=workflow_execution_id,
                to_event=to_event,
                reason=reason,
                reapply_signals=reapply_signals,
                request_id=request_id,
            )
        )
        return self._handle(answer)

    async def retry_workflow(
        self, workflow_execution_id: str, *, reason: str = "", request_id: str | None = None
    ) -> WorkflowHandle:
        """Try a failed, cancelled, terminated or timed-out execution again, from just before what ended it, in a new
        execution with the same workflow id."""
        answer = await self.api.call(
            ex.RetryExecution(
                org=self.org, workflow_execution_id=workflow_execution_id, reason=reason, request_id=request_id
            )
        )
        return self._handle(answer)

    async def fork_workflow(
        self,
        workflow_execution_id: str,
        at_event: int,
        *,
        workflow_id: str | None = None,
        reapply_signals: bool = False,
        request_id: str | None = None,
    ) -> WorkflowHandle:
        """Begin another execution with the past of this one up to an event where a turn ends; this one is left
        alone."""
        answer = await self.api.call(
            ex.ForkExecution(
                org=self.org,
                workflow_execution_id=workflow_execution_id,
                at_event=at_event,
                workflow_id=workflow_id,
                reapply_signals=reapply_signals,
                request_id=request_id,
            )
        )
        return self._handle(answer)

    def _handle(self, answer: ex.StartAnswer, result_type: Any = Any) -> WorkflowHandle:
        return WorkflowHandle(
            self,
            answer.workflow_execution_id,
            answer.workflow_id,
            result_type,
            created=answer.workflow_created,
            idempotency_key_used=answer.idempotency_key_used,
            idempotency_key_new=answer.idempotency_key_new,
        )

    async def dead_letters(self, workflow_execution_id: str | None = None, *, limit: int = 100) -> list[DeadLetter]:
        """Signals that were accepted but never read, with the reason: the newest first."""
        return await self.mailboxes.dead_letters(workflow_execution_id, limit)

    async def redeliver(self, dead_letter: DeadLetter, to: str | None = None) -> Redelivered:
        """Send a dead letter to the open execution with the same workflow id, or to the execution or workflow id `to`:
        one step, so that it is either still a dead letter or received, once.

        Raises ExecutionNotFound, ExecutionClosed, SignalLimitReached, or DeadLetterNotFound if somebody was faster.
        """
        return await self.mailboxes.redeliver(dead_letter, to)

    async def remove_dead_letter(self, dead_letter: DeadLetter) -> None:
        """Have it listed no more. The signal stays in the history."""
        await self.mailboxes.remove(dead_letter)

    async def bury_unread(self, workflow_execution_id: str, *, reason: str = "left_unread") -> int:
        """Make dead letters of the signals that a terminated or timed-out execution had seen and not read; how many.

        What it had not even seen became dead letters when it was closed. Needs a worker with its code.
        """
        return await self.mailboxes.bury(workflow_execution_id, reason)
