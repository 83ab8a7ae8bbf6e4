"""`Client` and `WorkflowHandle`: the contract in the words of an application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import structs

from holdfast.client.calls import NO_VALUE, Call, Calls, UpdateHandle, WaitFor, within
from holdfast.client.following import call_open, change_open, outcome_of
from holdfast.client.options import beginning_at, choice, tags, timeout_of
from holdfast.client.portal import Portal
from holdfast.client.views import WorkflowPage, WorkflowView, microseconds, result_of, view_of
from holdfast.contract import executions as ex
from holdfast.errors import InvalidRequest
from holdfast.frontends.python.definitions import Duration, workflow_definition
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DeadLetter, Status, TaskRow, TimerRow
from holdfast.model.payloads import DEFAULT_LIMIT_BYTES, decode, encode
from holdfast.model.values import IfClosed, IfRunning

if TYPE_CHECKING:
    from holdfast.client.sync import SyncClient

Workflow = str | type[Any] | Callable[..., Any]
Request = TypeVar("Request", ex.SignalWorkflow, ex.CancelExecution, ex.TerminateExecution)


class WorkflowHandle:
    """One execution. Cheap: making one reads nothing."""

    __slots__ = ("_client", "_result_type", "created", "id", "workflow_id")

    def __init__(
        self,
        client: Client,
        execution_id: str,
        workflow_id: str | None,
        result_type: Any = Any,
        *,
        created: bool = False,
    ) -> None:
        self._client = client
        self._result_type = result_type
        self.id = execution_id
        self.workflow_id = workflow_id
        self.created = created
        """Whether the call that gave this handle started the execution."""

    def __repr__(self) -> str:
        return f"WorkflowHandle({self.id!r}, workflow_id={self.workflow_id!r})"

    async def result(self, *, timeout: float | None = None, type_hint: Any = None) -> Any:
        """Wait for the end and give the result.

        If another execution goes on in its place (continue-as-new, reset), that one's result is meant. Raises
        WorkflowFailed, WorkflowCancelled, WorkflowTerminated or WorkflowTimedOut if there is none, TimeoutError if it
        takes longer than `timeout` seconds; the execution goes on.
        """
        waiting = outcome_of(self._client.executions, self._client.org, self.id)
        outcome = await waiting if timeout is None else await asyncio.wait_for(waiting, timeout)
        return result_of(outcome, self._result_type if type_hint is None else type_hint)

    async def describe(self) -> WorkflowView:
        return view_of(await self._client.executions.get(self._client.org, self.id))

    async def status(self) -> Status:
        return (await self._client.executions.get(self._client.org, self.id)).status

    async def signal(
        self, signal_name: str, signal_value: Any = None, *, request_id: str | None = None
    ) -> ex.SignalResponse:
        return await self._client.signal_workflow(self.id, signal_name, signal_value, request_id=request_id)

    async def query(
        self,
        query: Call,
        value: Any = NO_VALUE,
        *,
        as_of: int | None = None,
        timeout: float | None = None,
        type_hint: Any = None,
    ) -> Any:
        """Ask its program something: a name or a method decorated with @query. Also when it is closed.

        `as_of` asks the program as it was when that event was the last. Raises UnknownQuery, QueryFailed if there is no
        answer, NoWorker if no worker of this process has the code.
        """
        return await self._client.query_workflow(
            self.id, query, value, as_of=as_of, timeout=timeout, type_hint=type_hint
        )

    async def update(
        self,
        update: Call,
        value: Any = None,
        *,
        update_id: str | None = None,
        wait_for: WaitFor = "completed",
        timeout: float | None = None,
        type_hint: Any = None,
    ) -> Any:
        """Let its program change something, and give the answer: a name or a method decorated with @update.

        Raises UpdateRejected if the program refuses it, UpdateFailed if its handler fails or the execution closes
        first, TimeoutError after `timeout` seconds; the update goes on. The same `update_id` again is the same update.
        With wait_for="accepted" there is no answer yet: `start_update` gives a handle to fetch it by.
        """
        return await self._client.update_workflow(
            self.id, update, value, update_id=update_id, wait_for=wait_for, timeout=timeout, type_hint=type_hint
        )

    async def start_update(
        self, update: Call, value: Any = None, *, update_id: str | None = None, timeout: float | None = None
    ) -> UpdateHandle:
        """Request an update and wait until the program has accepted it. Raises UpdateRejected if it does not."""
        return await within(self._client.calls.start_update(self.id, update, value, update_id), timeout)

    def get_update(self, update_id: str) -> UpdateHandle:
        """A handle on an update that was requested earlier."""
        return UpdateHandle(self._client.executions, self._client.org, self.id, update_id)

    async def state(self, *, as_of: int | None = None) -> dict[str, Any]:
        """What its program shows in `ctx.state`; as it was when event `as_of` was the last. Needs no worker."""
        return await self._client.calls.state(self.id, as_of)

    async def stack(self) -> Any:
        """Where its code is: what every part of the program waits for."""
        return await self.query("__stack__")

    async def handlers(self) -> Any:
        """The signals, queries and updates that its program takes."""
        return await self.query("__handlers__")

    async def cancel(self, reason: str = "") -> bool:
        """Ask it to stop: its code gets CancelledError at its await. False if it is closed or was asked before."""
        return await self._client.cancel_workflow(self.id, reason)

    async def terminate(self, reason: str = "") -> bool:
        """End it at once; its code is not asked. False if it is closed."""
        return await self._client.terminate_workflow(self.id, reason)

    async def reset(
        self, to_event: int, *, reason: str = "", reapply_signals: bool = True, request_id: str | None = None
    ) -> WorkflowHandle:
        """Go on from an event of its history as if nothing after it had happened, see `Client.reset_workflow`."""
        handle = await self._client.reset_workflow(
            self.id, to_event, reason=reason, reapply_signals=reapply_signals, request_id=request_id
        )
        return self._like(handle)

    async def retry(self, *, reason: str = "", request_id: str | None = None) -> WorkflowHandle:
        """Try it again from just before what ended it, see `Client.retry_workflow`."""
        handle = await self._client.retry_workflow(self.id, reason=reason, request_id=request_id)
        return self._like(handle)

    async def fork(
        self,
        at_event: int,
        *,
        workflow_id: str | None = None,
        reapply_signals: bool = False,
        request_id: str | None = None,
    ) -> WorkflowHandle:
        """Begin another execution with its past up to an event, see `Client.fork_workflow`."""
        handle = await self._client.fork_workflow(
            self.id, at_event, workflow_id=workflow_id, reapply_signals=reapply_signals, request_id=request_id
        )
        return self._like(handle)

    def _like(self, other: WorkflowHandle) -> WorkflowHandle:
        """The other handle, with the result type of this one."""
        return WorkflowHandle(self._client, other.id, other.workflow_id, self._result_type, created=other.created)

    async def resume(self) -> bool:
        """Let a stuck execution be tried again now. False if it is not stuck."""
        request = ex.ResumeExecution(org=self._client.org, workflow_execution_id=self.id)
        return (await self._client.executions.resume(request)).changed

    async def history(self, *, after: int = 0, limit: int | None = None) -> list[HistoryEvent]:
        return await self._client.history(self.id, after=after, limit=limit)

    async def pending_tasks(self) -> list[TaskRow]:
        """Tasks that are queued or running, with attempt, worker, heartbeat details and progress."""
        return await self._client.executions.tasks(self._client.org, self.id)

    async def pending_timers(self) -> list[TimerRow]:
        return await self._client.executions.timers(self._client.org, self.id)


class Client:
    """Starts, signals and looks at the workflows of one org. Where the engine runs makes no difference to it."""

    def __init__(self, executions: ex.Executions, org: str, payload_limit: int = DEFAULT_LIMIT_BYTES) -> None:
        self.executions = executions
        self.org = org
        self.portal = Portal()
        """How other threads reach the event loop; the engine opens it."""
        self.calls = Calls(executions, org, payload_limit)
        self._limit = payload_limit
        self._sync: SyncClient | None = None

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
        request_id: str | None = None,
    ) -> WorkflowHandle:
        """Start a workflow. With the workflow id of an open execution, that one is found instead of starting another.

        `if_running` may say otherwise ("fail", "terminate": the open one ends), as `if_closed` may for a workflow id
        whose last execution is closed ("allow_if_failed", "reject"). It begins at `start_at`, if that lies ahead, and
        is ended when `execution_timeout` has passed since then. `request_id` makes a retry of the same call harmless,
        even if its first answer was lost.
        """
        kind, declared, result_type = _resolve(workflow)
        answer = await self.executions.start(
            ex.StartWorkflow(
                org=self.org,
                kind=kind,
                version=version or declared,
                workflow_id=workflow_id,
                input=encode(input, field="input", limit=self._limit),
                queue=queue,
                priority=priority,
                metadata=tags(metadata),
                execution_timeout_s=timeout_of(workflow, execution_timeout),
                start_at=beginning_at(start_at),
                if_running=choice(IfRunning, if_running, "if_running"),
                if_closed=choice(IfClosed, if_closed, "if_closed"),
                request_id=request_id,
            )
        )
        return WorkflowHandle(
            self, answer.workflow_execution_id, answer.workflow_id, result_type, created=answer.workflow_created
        )

    async def signal_workflow(
        self, workflow_execution_id: str, signal_name: str, signal_value: Any = None, *, request_id: str | None = None
    ) -> ex.SignalResponse:
        """Send a signal to an open execution, or to the one that goes on in its place: queued, delivered in order,
        never lost."""
        request = ex.SignalWorkflow(
            org=self.org,
            workflow_execution_id=workflow_execution_id,
            signal_name=signal_name,
            signal_value=encode(signal_value, field="signal_value", limit=self._limit),
            request_id=request_id,
        )
        return await call_open(lambda key: self.executions.signal(_to(request, key)), workflow_execution_id)

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
        request_id: str | None = None,
    ) -> ex.SignalWithStartResponse:
        """Signal the open execution of a workflow id, starting it first if there is none. One atomic step.

        `execution_timeout`, `start_at` and `if_closed` are for the start, as in `start_workflow`.
        """
        kind, declared, _ = _resolve(workflow)
        return await self.executions.signal_with_start(
            ex.SignalWithStart(
                org=self.org,
                workflow_id=workflow_id,
                kind=kind,
                version=version or declared,
                input=encode(workflow_input, field="workflow_input", limit=self._limit),
                queue="default" if queue is None else queue,
                priority=priority,
                metadata=tags(metadata),
                execution_timeout_s=timeout_of(workflow, execution_timeout),
                start_at=beginning_at(start_at),
                if_closed=choice(IfClosed, if_closed, "if_closed"),
                signal_name=signal_name,
                signal_value=encode(signal_value, field="signal_value", limit=self._limit),
                request_id=request_id,
            )
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
        result_type = Any if workflow is None else _resolve(workflow)[2]
        return WorkflowHandle(self, workflow_execution_id, None, result_type)

    async def find_workflow(self, workflow_id: str, workflow: Workflow | None = None) -> WorkflowHandle:
        """The open execution of a workflow id, or the last closed one."""
        found = await self.executions.find(self.org, workflow_id)
        result_type = Any if workflow is None else _resolve(workflow)[2]
        return WorkflowHandle(self, found.id, found.workflow_id, result_type)

    async def cancel_workflow(self, workflow_execution_id: str, reason: str = "") -> bool:
        request = ex.CancelExecution(org=self.org, workflow_execution_id=workflow_execution_id, reason=reason)
        return await change_open(lambda key: self.executions.cancel(_to(request, key)), workflow_execution_id)

    async def terminate_workflow(self, workflow_execution_id: str, reason: str = "") -> bool:
        request = ex.TerminateExecution(org=self.org, workflow_execution_id=workflow_execution_id, reason=reason)
        return await change_open(lambda key: self.executions.terminate(_to(request, key)), workflow_execution_id)

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
        answer = await self.executions.reset(
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
        answer = await self.executions.retry(
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
        answer = await self.executions.fork(
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

    def _handle(self, answer: ex.StartAnswer) -> WorkflowHandle:
        return WorkflowHandle(self, answer.workflow_execution_id, answer.workflow_id, created=answer.workflow_created)

    async def history(
        self, workflow_execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[HistoryEvent]:
        return await self.executions.history(self.org, workflow_execution_id, after, limit)

    async def dead_letters(self, workflow_execution_id: str | None = None, *, limit: int = 100) -> list[DeadLetter]:
        """Signals that were accepted but never read, with the reason."""
        return await self.executions.dead_letters(self.org, workflow_execution_id, limit)

    async def count_workflows(self) -> dict[Status, int]:
        return await self.executions.count(self.org)

    async def list_workflows(
        self,
        *,
        status: Status | str | Sequence[Status | str] = (),
        kind: str | Sequence[str] = (),
        workflow_id: str | None = None,
        queue: str | None = None,
        metadata: Mapping[str, str] | None = None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> WorkflowPage:
        """One page of executions, newest first: those that match every filter, and have all pairs of `metadata`."""
        page = await self.executions.list(
            ex.ListExecutions(
                org=self.org,
                statuses=_statuses(status),
                kinds=(kind,) if isinstance(kind, str) else tuple(kind),
                workflow_id=workflow_id,
                queue=queue,
                metadata=tuple(sorted((tags(metadata) or {}).items())),
                created_from=None if created_from is None else microseconds(created_from, "created_from"),
                created_before=None if created_before is None else microseconds(created_before, "created_before"),
                cursor=cursor,
                limit=limit,
            )
        )
        return WorkflowPage(tuple(view_of(found) for found in page.items), page.next_cursor)

    async def iter_workflows(self, **filters: Any) -> AsyncIterator[WorkflowView]:
        """All executions that match, page by page."""
        cursor: str | None = None
        while True:
            page = await self.list_workflows(**filters, cursor=cursor)
            for found in page.items:
                yield found
            cursor = page.next_cursor
            if cursor is None:
                return


def signal_value(event: HistoryEvent, type_hint: Any = Any) -> Any:
    """The decoded value of a SIGNAL_RECEIVED event."""
    return decode(cast(Any, event.body).signal_value, type_hint, field="signal_value")


def _resolve(workflow: Workflow) -> tuple[str, str | None, Any]:
    """Kind, declared version and result type of what a caller may give as a workflow."""
    if isinstance(workflow, str):
        return workflow, None, Any
    definition = workflow_definition(workflow)
    if definition is None:
        raise InvalidRequest(
            f"{workflow!r} is not a workflow: decorate it with @workflow, or give its kind as text", field="workflow"
        )
    return definition.kind, definition.version, definition.result_type


def _statuses(status: Status | str | Sequence[Status | str]) -> tuple[Status, ...]:
    wanted = (status,) if isinstance(status, str) else tuple(status)
    try:
        return tuple(Status(item) for item in wanted)
    except ValueError as error:
        known = ", ".join(Status)
        raise InvalidRequest(f"{error}; known: {known}", field="status") from error


def _to(request: Request, execution_id: str) -> Request:
    return structs.replace(request, workflow_execution_id=execution_id)
