"""`Client` and `WorkflowHandle`: the contract in the words of an application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from holdfast.client.views import WorkflowPage, WorkflowView, microseconds, result_of, view_of
from holdfast.contract import executions as ex
from holdfast.errors import InvalidRequest
from holdfast.frontends.python.definitions import workflow_definition
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DeadLetter, Status, TaskRow, TimerRow
from holdfast.model.payloads import DEFAULT_LIMIT_BYTES, decode, encode

Workflow = str | type[Any] | Callable[..., Any]


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

        Raises WorkflowFailed, WorkflowCancelled or WorkflowTerminated if there is none, TimeoutError if it takes longer
        than `timeout` seconds; the execution goes on.
        """
        waiting = self._client.executions.outcome(self._client.org, self.id)
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

    async def cancel(self, reason: str = "") -> bool:
        """Ask it to stop: its code gets CancelledError at its await. False if it is closed or was asked before."""
        return await self._client.cancel_workflow(self.id, reason)

    async def terminate(self, reason: str = "") -> bool:
        """End it at once; its code is not asked. False if it is closed."""
        return await self._client.terminate_workflow(self.id, reason)

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
        self._limit = payload_limit

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
        request_id: str | None = None,
    ) -> WorkflowHandle:
        """Start a workflow. With the workflow id of an open execution, that one is found instead of starting another.

        `request_id` makes a retry of the same call harmless, even if its first answer was lost.
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
                metadata=_metadata(metadata),
                request_id=request_id,
            )
        )
        return WorkflowHandle(
            self, answer.workflow_execution_id, answer.workflow_id, result_type, created=answer.workflow_created
        )

    async def signal_workflow(
        self, workflow_execution_id: str, signal_name: str, signal_value: Any = None, *, request_id: str | None = None
    ) -> ex.SignalResponse:
        """Send a signal to an open execution: queued, delivered in order, never lost."""
        return await self.executions.signal(
            ex.SignalWorkflow(
                org=self.org,
                workflow_execution_id=workflow_execution_id,
                signal_name=signal_name,
                signal_value=encode(signal_value, field="signal_value", limit=self._limit),
                request_id=request_id,
            )
        )

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
        request_id: str | None = None,
    ) -> ex.SignalWithStartResponse:
        """Signal the open execution of a workflow id, starting it first if there is none. One atomic step."""
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
                metadata=_metadata(metadata),
                signal_name=signal_name,
                signal_value=encode(signal_value, field="signal_value", limit=self._limit),
                request_id=request_id,
            )
        )

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
        return (await self.executions.cancel(request)).changed

    async def terminate_workflow(self, workflow_execution_id: str, reason: str = "") -> bool:
        request = ex.TerminateExecution(org=self.org, workflow_execution_id=workflow_execution_id, reason=reason)
        return (await self.executions.terminate(request)).changed

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
        created_from: datetime | None = None,
        created_before: datetime | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> WorkflowPage:
        """One page of executions, newest first."""
        page = await self.executions.list(
            ex.ListExecutions(
                org=self.org,
                statuses=_statuses(status),
                kinds=(kind,) if isinstance(kind, str) else tuple(kind),
                workflow_id=workflow_id,
                queue=queue,
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


def _metadata(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    if metadata is None:
        return None
    for key, value in metadata.items():
        given: tuple[object, object] = (key, value)
        if not all(isinstance(item, str) for item in given):
            raise InvalidRequest(f"metadata must map text to text: {key!r}: {value!r}", field="metadata")
    return dict(metadata)
