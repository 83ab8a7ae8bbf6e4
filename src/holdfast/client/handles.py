"""`WorkflowHandle`: one execution, as an application talks to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from holdfast.client.calls import NO_VALUE, Call, UpdateHandle, WaitFor, within
from holdfast.client.following import outcome_of
from holdfast.client.task_output import TaskOutput, TaskUpdate
from holdfast.client.views import result_of
from holdfast.contract import executions as ex
from holdfast.contract.execution_reads import (
    ExecutionInfo,
    GetWorkflow,
    ListPendingTasks,
    ListPendingTimers,
    PendingTask,
    PendingTimer,
)
from holdfast.contract.explanations import ExplainWorkflow, WorkflowExplanation
from holdfast.contract.mailboxes import Mailbox
from holdfast.contract.messages import ListPromises, ListWaits, PromiseInfo, WaitInfo
from holdfast.contract.records import plain
from holdfast.explaining.events import WaitExplanation, explain_wait
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Status

if TYPE_CHECKING:
    from holdfast.client.client import Client


class WorkflowHandle:
    """One execution. Cheap: making one reads nothing."""

    __slots__ = (
        "_client",
        "_result_type",
        "created",
        "id",
        "idempotency_key_new",
        "idempotency_key_used",
        "workflow_id",
    )

    def __init__(
        self,
        client: Client,
        execution_id: str,
        workflow_id: str | None,
        result_type: Any = Any,
        *,
        created: bool = False,
        idempotency_key_used: bool = False,
        idempotency_key_new: bool = False,
    ) -> None:
        self._client = client
        self._result_type = result_type
        self.id = execution_id
        self.workflow_id = workflow_id
        self.created = created
        """Whether the call that gave this handle started the execution."""
        self.idempotency_key_used = idempotency_key_used
        """Whether the call that gave this handle had an idempotency key."""
        self.idempotency_key_new = idempotency_key_new
        """Whether it was the first with that key; if not, all else is as that one was answered."""

    def __repr__(self) -> str:
        return f"WorkflowHandle({self.id!r}, workflow_id={self.workflow_id!r})"

    async def result(self, *, timeout: float | None = None, type_hint: Any = None) -> Any:
        """Wait for the end and give the result.

        If another execution goes on in its place (continue-as-new, reset), that one's result is meant. Raises
        WorkflowFailed, WorkflowCancelled, WorkflowTerminated or WorkflowTimedOut if there is none, TimeoutError if it
        takes longer than `timeout` seconds; the execution goes on.
        """
        waiting = outcome_of(self._client.api, self._client.org, self.id)
        outcome = await (waiting if timeout is None else asyncio.wait_for(waiting, timeout))
        return result_of(outcome, self._result_type if type_hint is None else type_hint)

    async def describe(self) -> ExecutionInfo:
        return await self._client.api.call(GetWorkflow(org=self._client.org, workflow_execution_id=self.id))

    async def status(self) -> Status:
        return (await self.describe()).status

    async def signal(
        self, signal_name: str, signal_value: Any = None, *, request_id: str | None = None, using: Any = None
    ) -> ex.SignalResponse:
        return await self._client.signal_workflow(
            self.id, signal_name, signal_value, request_id=request_id, using=using
        )

    async def mailbox(self, *, limit: int = 100) -> Mailbox:
        """The oldest signals that it has not read; of a closed execution, its dead letters.

        Its program is asked. If no worker of this process has the code, the mailbox is not `complete`.
        """
        return await self._client.mailboxes.look(self.id, limit)

    async def pending_signals(self) -> dict[str, int]:
        """How many signals of each name it has not read."""
        return dict((await self._client.mailboxes.look(self.id, 1)).counts)

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
        return UpdateHandle(self._client.api, self._client.org, self.id, update_id)

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
        return (await self._client.api.call(request)).changed

    async def history(self, *, after: int = 0, limit: int | None = None) -> list[HistoryEvent]:
        return await self._client.history(self.id, after=after, limit=limit)

    async def pending_tasks(self) -> list[PendingTask]:
        """Tasks that are queued or running, with attempt, worker, heartbeat details and progress."""
        request = ListPendingTasks(org=self._client.org, workflow_execution_id=self.id)
        return [plain(task) for task in (await self._client.api.call(request)).tasks]

    async def task_output(self, task_no: int, *, after: int = 0, limit: int = 100, type_hint: Any = Any) -> TaskOutput:
        """What one of its tasks has said, see `Client.task_output`."""
        return await self._client.task_output(self.id, task_no, after=after, limit=limit, type_hint=type_hint)

    def follow_task(self, task_no: int, *, after: int = 0, type_hint: Any = Any) -> AsyncIterator[TaskUpdate]:
        """What one of its tasks says, and how it goes, until it has ended; see `Client.follow_task`."""
        return self._client.follow_task(self.id, task_no, after=after, type_hint=type_hint)

    async def promises(self) -> list[PromiseInfo]:
        """Its promises in the order in which they were made, with who settled them."""
        request = ListPromises(org=self._client.org, workflow_execution_id=self.id)
        return list(plain(await self._client.api.call(request)).promises)

    async def waits(self) -> list[WaitInfo]:
        """The events, messages and broadcasts it waits for, the longest first."""
        request = ListWaits(org=self._client.org, workflow_execution_id=self.id)
        return list((await self._client.api.call(request)).waits)

    async def explain(self) -> WorkflowExplanation:
        """Why it does not move, or how it ended, and what to do next."""
        return await self._client.api.call(ExplainWorkflow(org=self._client.org, workflow_execution_id=self.id))

    async def explain_wait(self, wait_no: int | None = None) -> WaitExplanation:
        """Why a wait has got nothing yet: the events of its key that came nearest, and what refused them. `wait_no` may
        be left out if there is only one wait."""
        return plain(await explain_wait(self._client.api, self._client.org, self.id, wait_no))

    async def pending_timers(self) -> list[PendingTimer]:
        request = ListPendingTimers(org=self._client.org, workflow_execution_id=self.id)
        return list((await self._client.api.call(request)).timers)
