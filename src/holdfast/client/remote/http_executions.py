"""`contract.executions.Executions` over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Raw, structs

from holdfast.client.remote.http_client import HttpClient, decoded, escaped, new_request_id
from holdfast.contract import calls as cl
from holdfast.contract import executions as ex
from holdfast.contract.task_output import OutputPage, TaskFeedItem, TaskFeedItemKind
from holdfast.errors import ExecutionNotFound, InvalidRequest
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Execution, TaskRow, TimerRow, WorkflowStatus
from holdfast.model.validation import check_name
from holdfast.transport.rest import bodies as b
from holdfast.transport.rest import reading as rd
from holdfast.transport.rest import task_output_views as ov
from holdfast.transport.rest import views as v
from holdfast.transport.rest.events import EventView, read_event
from holdfast.transport.rest.times import instant, instant_or_none, micros

WAIT_S: Final = 25.0
PAGE: Final = 1_000
_TASK_ITEM: Final = frozenset(TaskFeedItemKind)
_CLOSED: Final = "end"


def no_transaction(using: Any) -> None:
    if using is not None:
        _refuse_using()


def _refuse_using() -> NoReturn:
    raise InvalidRequest(
        "only an engine in the same process can join your transaction: use Engine on this database", field="using"
    )


class HttpExecutions:
    def __init__(self, http_client: HttpClient) -> None:
        self._http = http_client

    # --- beginning and signalling ---

    async def start(self, request: ex.StartWorkflow, using: Any = None) -> ex.StartAnswer:
        no_transaction(using)
        view = await self._http.post(
            _executions(request.org),
            b.StartBody(
                workflow_kind=request.kind,
                workflow_id=request.workflow_id,
                workflow_input=request.input,
                workflow_version=request.version,
                queue=request.queue,
                priority_seconds=request.priority,
                metadata=request.metadata,
                execution_timeout_seconds=request.execution_timeout_s,
                start_at=instant_or_none(request.start_at),
                if_running=request.if_running,
                if_closed=request.if_closed,
                request_id=_id_of(request),
                idempotency_key_ttl_seconds=request.ttl_s,
            ),
            v.StartView,
        )
        return _started(view, request)

    async def signal(self, request: ex.SignalWorkflow, using: Any = None) -> ex.SignalResponse:
        no_transaction(using)
        view = await self._http.post(
            _one(request, "/signal"),
            b.SignalBody(
                signal_name=request.signal_name,
                signal_value=request.signal_value,
                addressed_to=request.addressed_to,
                request_id=_id_of(request),
            ),
            v.SignalView,
        )
        return ex.SignalResponse(view.signal_event_sequence, view.signal_delivered)

    async def signal_with_start(self, request: ex.SignalWithStart, using: Any = None) -> ex.SignalWithStartResponse:
        no_transaction(using)
        view = await self._http.post(
            f"{_executions(request.org)}/signal-with-start",
            b.SignalWithStartBody(
                workflow_id=request.workflow_id,
                workflow_kind=request.kind,
                signal_name=request.signal_name,
                signal_value=request.signal_value,
                workflow_input=request.input,
                workflow_version=request.version,
                queue=request.queue,
                priority_seconds=request.priority,
                metadata=request.metadata,
                execution_timeout_seconds=request.execution_timeout_s,
                start_at=instant_or_none(request.start_at),
                if_closed=request.if_closed,
                request_id=_id_of(request),
                idempotency_key_ttl_seconds=request.ttl_s,
            ),
            v.SignalWithStartView,
        )
        given = request.request_id is not None
        return ex.SignalWithStartResponse(
            view.workflow_execution_id,
            view.workflow_created,
            view.signal_event_sequence,
            view.signal_delivered,
            view.idempotency_key_used and given,
            view.idempotency_key_new and given,
        )

    # --- ending and taking up again ---

    async def cancel(self, request: ex.CancelExecution) -> ex.Changed:
        return await self._change(request, "/cancel", b.ReasonBody(reason=request.reason))

    async def terminate(self, request: ex.TerminateExecution) -> ex.Changed:
        return await self._change(request, "/terminate", b.ReasonBody(reason=request.reason))

    async def resume(self, request: ex.ResumeExecution) -> ex.Changed:
        return await self._change(request, "/resume", b.NoBody())

    async def _change(self, request: Any, action: str, body: b.Body) -> ex.Changed:
        view = await self._http.post(_one(request, action), body, v.ChangedView)
        return ex.Changed(view.changed, view.successor)

    async def reset(self, request: ex.ResetExecution) -> ex.StartAnswer:
        body = b.ResetBody(
            to_event=request.to_event,
            reason=request.reason,
            reapply_signals=request.reapply_signals,
            request_id=_id_of(request),
        )
        return _started(await self._http.post(_one(request, "/reset"), body, v.StartView), request)

    async def fork(self, request: ex.ForkExecution) -> ex.StartAnswer:
        body = b.ForkBody(
            at_event=request.at_event,
            workflow_id=request.workflow_id,
            reapply_signals=request.reapply_signals,
            request_id=_id_of(request),
        )
        return _started(await self._http.post(_one(request, "/fork"), body, v.StartView), request)

    async def retry(self, request: ex.RetryExecution) -> ex.StartAnswer:
        body = b.RetryBody(reason=request.reason, request_id=_id_of(request))
        return _started(await self._http.post(_one(request, "/retry"), body, v.StartView), request)

    # --- looking ---

    async def get(self, org: str, execution_id: str) -> Execution:
        return rd.read_execution(await self._http.get(_path(org, execution_id), v.ExecutionView), org)

    async def find(self, org: str, workflow_id: str) -> Execution:
        check_name(workflow_id, "workflow_id")
        path = f"/api/orgs/{escaped(org)}/workflows/{escaped(workflow_id)}"
        return rd.read_execution(await self._http.get(path, v.ExecutionView), org)

    async def count(self, org: str) -> dict[WorkflowStatus, int]:
        return (await self._http.get(f"{_executions(org)}/count", v.CountView)).counts

    async def state(self, org: str, execution_id: str, as_of: int | None = None) -> dict[str, Raw]:
        view = await self._http.get(_path(org, execution_id, "/state"), v.StateView, {"as_of": as_of})
        return view.state

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None, types: Sequence[str] = ()
    ) -> list[HistoryEvent]:
        """Page by page, if there are many."""
        events: list[HistoryEvent] = []
        while limit is None or len(events) < limit:
            page = PAGE if limit is None else min(PAGE, limit - len(events))
            view = await self._http.get(
                _path(org, execution_id, "/history"),
                v.HistoryView,
                {"after": after, "limit": page, "type": tuple(types) or None},
            )
            events += [read_event(event) for event in view.events]
            if not view.more:
                break
            after = events[-1].seq
        return events

    async def follow(self, org: str, execution_id: str, after: int = 0) -> AsyncIterator[list[HistoryEvent]]:
        path = _path(org, execution_id, "/events")
        async for event in self._http.events(path, {"after": after}, last=_CLOSED):
            if event.kind != _CLOSED:
                yield [read_event(decoded(event.data, EventView))]

    async def tasks(self, org: str, execution_id: str) -> list[TaskRow]:
        view = await self._http.get(_path(org, execution_id, "/tasks"), v.TaskList)
        return [rd.read_task(task, org) for task in view.tasks]

    async def task_output(
        self, org: str, execution_id: str, task_no: int, after: int = 0, limit: int = 100
    ) -> OutputPage:
        path = _path(org, execution_id, f"/tasks/{task_no}/output")
        return ov.read_page(await self._http.get(path, ov.OutputPageView, {"after": after, "limit": limit}))

    async def follow_task(
        self, org: str, execution_id: str, task_no: int, after: int = 0
    ) -> AsyncIterator[list[TaskFeedItem]]:
        path = _path(org, execution_id, f"/tasks/{task_no}/events")
        async for event in self._http.events(path, {"after": after}, last=TaskFeedItemKind.ENDED):
            if event.kind in _TASK_ITEM:
                yield [ov.read_feed_item(decoded(event.data, ov.TaskNewsView))]

    async def timers(self, org: str, execution_id: str) -> list[TimerRow]:
        view = await self._http.get(_path(org, execution_id, "/timers"), v.TimerList)
        return [rd.read_timer(timer, org) for timer in view.timers]

    # --- waiting and asking ---

    async def outcome(self, org: str, execution_id: str) -> ex.Outcome:
        while True:
            path = _path(org, execution_id, "/result")
            view = await self._http.get(path, v.ResultView, {"wait": WAIT_S}, WAIT_S)
            outcome = rd.read_outcome(view)
            if outcome is not None:
                return outcome

    async def request_update(self, request: cl.RequestUpdate) -> cl.UpdateTicket:
        given = request.update_id if request.update_id is not None else request.request_id
        view = await self._http.post(
            _one(request, "/updates"),
            b.UpdateBody(
                update_name=request.update_name,
                input=request.input,
                update_id=given if given is not None else new_request_id(),
                wait_for=cl.UpdateStatus.REQUESTED,
            ),
            v.UpdateView,
        )
        return cl.UpdateTicket(request.workflow_execution_id, view.update_id, view.update_event_sequence or 0)

    async def update_outcome(self, org: str, ticket: cl.UpdateTicket, wait_for: cl.UpdateStatus) -> cl.UpdateOutcome:
        check_name(ticket.update_id, "update_id")
        path = _path(org, ticket.workflow_execution_id, f"/updates/{escaped(ticket.update_id)}")
        wait = 0.0 if wait_for is cl.UpdateStatus.REQUESTED else WAIT_S
        while True:
            query = {"wait_for": str(wait_for), "wait": wait, "sequence": ticket.update_event_sequence}
            outcome = rd.read_update(await self._http.get(path, v.UpdateView, query, wait))
            if not wait or outcome.status.is_final or outcome.status is wait_for:
                return outcome

    async def query(self, request: cl.QueryExecution) -> Raw:
        body = b.QueryBody(
            query_name=request.query_name,
            input=request.input if request.has_input else msgspec.UNSET,
            as_of=request.as_of,
        )
        return (await self._http.post(_one(request, "/query"), body, v.QueryView, wait_s=None)).result

    # --- what was not read ---

    async def mailbox(self, org: str, execution_id: str, limit: int = 100) -> ex.MailboxAnswer:
        path = _path(org, execution_id, "/mailbox")
        return rd.read_mailbox(await self._http.get(path, v.MailboxView, {"limit": limit}))

    async def dead_letters(self, org: str, execution_id: str | None = None, limit: int = 100) -> ex.DeadLetters:
        everywhere = f"/api/orgs/{escaped(org)}/dead-letters"
        path = everywhere if execution_id is None else _path(org, execution_id, "/dead-letters")
        try:
            view = await self._http.get(path, v.DeadLetterList, {"limit": limit})
        except ExecutionNotFound:
            view = await self._http.get(everywhere, v.DeadLetterList, {"limit": 1})
            return ex.DeadLetters(letters=(), now=micros(view.now))
        return rd.read_dead_letters(view, org)

    async def redeliver(self, request: ex.RedeliverSignal) -> ex.RedeliverResult:
        path = _one(request, f"/dead-letters/{request.seq}/redeliver")
        body = b.RedeliverBody(to=request.to)
        view = await self._http.post(path, body, v.RedeliveredView, repeatable=False)
        return ex.RedeliverResult(view.workflow_execution_id, view.signal_event_sequence)

    async def remove_dead_letter(self, request: ex.RemoveDeadLetter) -> None:
        await self._http.delete(_one(request, f"/dead-letters/{request.seq}"))

    async def dead_letter_unread(self, request: ex.DeadLetterUnread) -> int:
        body = b.BuryBody(reason=request.reason)
        view = await self._http.post(_one(request, "/bury-unread"), body, v.BuriedView, repeatable=False)
        return view.buried

    # Last, so that `list` means the type in the annotations above.
    async def list(self, request: ex.ListExecutions) -> ex.ExecutionPage:
        query = {
            "status": [str(status) for status in request.statuses] or None,
            "workflow_kind": request.kinds or None,
            "workflow_id": request.workflow_id,
            "queue": request.queue,
            "metadata": [f"{key}={value}" for key, value in request.metadata] or None,
            "created_from": _shown(request.created_from),
            "created_before": _shown(request.created_before),
            "cursor": request.cursor,
            "limit": request.limit,
        }
        page = await self._http.get(_executions(request.org), v.ExecutionPage, query)
        return ex.ExecutionPage(tuple(rd.read_execution(item, request.org) for item in page.items), page.next_cursor)


def _executions(org: str) -> str:
    return f"/api/orgs/{escaped(org)}/workflow-executions"


def _path(org: str, execution_id: str, action: str = "") -> str:
    check_name(execution_id, "workflow_execution_id")
    return f"{_executions(org)}/{escaped(execution_id)}{action}"


def _one(request: Any, action: str) -> str:
    return _path(request.org, request.workflow_execution_id, action)


def _id_of(request: Any) -> str:
    """With an id of its own a call may be sent again."""
    return request.request_id if request.request_id is not None else new_request_id()


def _started(view: v.StartView, request: Any) -> ex.StartAnswer:
    answer = ex.StartAnswer(
        view.workflow_execution_id,
        view.workflow_id,
        view.workflow_created,
        view.idempotency_key_used,
        view.idempotency_key_new,
    )
    if request.request_id is None:
        return structs.replace(answer, idempotency_key_used=False, idempotency_key_new=False)
    return answer


def _shown(at: int | None) -> str | None:
    return None if at is None else instant(at).isoformat()
