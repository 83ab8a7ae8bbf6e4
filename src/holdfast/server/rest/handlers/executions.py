"""Executions: started, listed, looked at, ended, taken up again."""

from __future__ import annotations

from holdfast.contract import executions as ex
from holdfast.errors import InvalidRequest
from holdfast.model.events import HistoryEvent
from holdfast.server.rest.calls import Call, within
from holdfast.transport.rest import bodies as b
from holdfast.transport.rest import views as v
from holdfast.transport.rest.events import event_view
from holdfast.transport.rest.times import micros_or_none


async def start_workflow(call: Call) -> v.StartView:
    body: b.StartBody = call.body
    return _started(
        await call.engine_api.executions.start(
            ex.StartWorkflow(
                org=call.org,
                kind=body.workflow_kind,
                version=body.workflow_version,
                workflow_id=body.workflow_id,
                input=body.workflow_input,
                queue=body.queue,
                priority=body.priority_seconds,
                metadata=body.metadata,
                execution_timeout_s=body.execution_timeout_seconds,
                start_at=micros_or_none(body.start_at),
                if_running=body.if_running,
                if_closed=body.if_closed,
                ttl_s=body.idempotency_key_ttl_seconds,
                request_id=call.request_id(),
            )
        )
    )


async def signal_with_start(call: Call) -> v.SignalWithStartView:
    body: b.SignalWithStartBody = call.body
    answer = await call.engine_api.executions.signal_with_start(
        ex.SignalWithStart(
            org=call.org,
            workflow_id=body.workflow_id,
            kind=body.workflow_kind,
            version=body.workflow_version,
            input=body.workflow_input,
            queue=body.queue,
            priority=body.priority_seconds,
            metadata=body.metadata,
            execution_timeout_s=body.execution_timeout_seconds,
            start_at=micros_or_none(body.start_at),
            if_closed=body.if_closed,
            ttl_s=body.idempotency_key_ttl_seconds,
            signal_name=body.signal_name,
            signal_value=body.signal_value,
            request_id=call.request_id(),
        )
    )
    return v.SignalWithStartView(
        workflow_execution_id=answer.workflow_execution_id,
        workflow_created=answer.workflow_created,
        signal_event_sequence=answer.signal_event_sequence,
        signal_delivered=answer.signal_delivered,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


async def signal_workflow(call: Call) -> v.SignalView:
    body: b.SignalBody = call.body
    answer = await call.engine_api.executions.signal(
        ex.SignalWorkflow(
            org=call.org,
            workflow_execution_id=call.execution_id,
            signal_name=body.signal_name,
            signal_value=body.signal_value,
            addressed_to=body.addressed_to,
            request_id=call.request_id(),
        )
    )
    return v.SignalView(signal_event_sequence=answer.signal_event_sequence, signal_delivered=answer.signal_delivered)


async def list_workflows(call: Call) -> v.ExecutionPage:
    page = await call.engine_api.executions.list(list_request(call.org, call.query, call.query.cursor))
    return v.ExecutionPage(items=tuple(v.execution_view(item) for item in page.items), next_cursor=page.next_cursor)


def list_request(org: str, query: b.ListQuery | b.ListStreamQuery, cursor: str | None = None) -> ex.ListExecutions:
    return ex.ListExecutions(
        org=org,
        statuses=query.status,
        kinds=query.workflow_kind,
        workflow_id=query.workflow_id,
        queue=query.queue,
        metadata=tuple(sorted(pair_of(text) for text in query.metadata)),
        created_from=micros_or_none(query.created_from),
        created_before=micros_or_none(query.created_before),
        cursor=cursor,
        limit=query.limit,
    )


def pair_of(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise InvalidRequest(f"metadata is given as key=value, not {text!r:.100}", field="metadata")
    return key, value


async def count_workflows(call: Call) -> v.CountView:
    counts = await call.engine_api.executions.count(call.org)
    return v.CountView(counts=counts, total=sum(counts.values()))


async def get_workflow(call: Call) -> v.ExecutionView:
    return v.execution_view(await call.engine_api.executions.get(call.org, call.execution_id))


async def find_workflow(call: Call) -> v.ExecutionView:
    return v.execution_view(await call.engine_api.executions.find(call.org, call.path["workflow_id"]))


async def workflow_history(call: Call) -> v.HistoryView:
    query: b.HistoryQuery = call.query
    executions = call.engine_api.executions
    events = await executions.history(call.org, call.execution_id, query.after, query.limit, query.type)
    if not events and query.wait:
        await within(_appended(call, query.after), query.wait)
        events = await executions.history(call.org, call.execution_id, query.after, query.limit, query.type)
    elif not events and query.after:
        await executions.get(call.org, call.execution_id)
    return v.HistoryView(events=tuple(event_view(event) for event in events), more=len(events) == query.limit)


async def _appended(call: Call, after: int) -> list[HistoryEvent] | None:
    """Events after a number, as soon as there are any of the wanted types."""
    wanted = set(call.query.type)
    feed = call.engine_api.feeds.history(call.org, call.execution_id, after)
    async for events in feed:
        if not wanted or any(event.type in wanted for event in events):
            return events
    return None


async def workflow_state(call: Call) -> v.StateView:
    return v.StateView(state=await call.engine_api.executions.state(call.org, call.execution_id, call.query.as_of))


async def workflow_result(call: Call) -> v.ResultView:
    executions = call.engine_api.executions
    execution = await executions.get(call.org, call.execution_id)
    if execution.is_open:
        outcome = await within(executions.outcome(call.org, call.execution_id), call.query.wait or 0.001)
        if outcome is None:
            return v.ResultView(workflow_execution_id=execution.id, status=execution.status, closed=False)
    else:
        outcome = await executions.outcome(call.org, call.execution_id)
    return v.result_view(execution.id, outcome)


async def cancel_workflow(call: Call) -> v.ChangedView:
    request = ex.CancelExecution(org=call.org, workflow_execution_id=call.execution_id, reason=call.body.reason)
    return _changed(await call.engine_api.executions.cancel(request))


async def terminate_workflow(call: Call) -> v.ChangedView:
    request = ex.TerminateExecution(org=call.org, workflow_execution_id=call.execution_id, reason=call.body.reason)
    return _changed(await call.engine_api.executions.terminate(request))


async def resume_workflow(call: Call) -> v.ChangedView:
    request = ex.ResumeExecution(org=call.org, workflow_execution_id=call.execution_id)
    return _changed(await call.engine_api.executions.resume(request))


async def reset_workflow(call: Call) -> v.StartView:
    body: b.ResetBody = call.body
    return _started(
        await call.engine_api.executions.reset(
            ex.ResetExecution(
                org=call.org,
                workflow_execution_id=call.execution_id,
                to_event=body.to_event,
                reason=body.reason,
                reapply_signals=body.reapply_signals,
                request_id=call.request_id(),
            )
        )
    )


async def fork_workflow(call: Call) -> v.StartView:
    body: b.ForkBody = call.body
    return _started(
        await call.engine_api.executions.fork(
            ex.ForkExecution(
                org=call.org,
                workflow_execution_id=call.execution_id,
                at_event=body.at_event,
                workflow_id=body.workflow_id,
                reapply_signals=body.reapply_signals,
                request_id=call.request_id(),
            )
        )
    )


async def retry_workflow(call: Call) -> v.StartView:
    return _started(
        await call.engine_api.executions.retry(
            ex.RetryExecution(
                org=call.org,
                workflow_execution_id=call.execution_id,
                reason=call.body.reason,
                request_id=call.request_id(),
            )
        )
    )


async def workflow_tasks(call: Call) -> v.TaskList:
    rows = await call.engine_api.executions.tasks(call.org, call.execution_id)
    return v.TaskList(tasks=tuple(v.task_view(row) for row in rows))


async def workflow_timers(call: Call) -> v.TimerList:
    rows = await call.engine_api.executions.timers(call.org, call.execution_id)
    return v.TimerList(timers=tuple(v.timer_view(row) for row in rows))


def _started(answer: ex.StartAnswer) -> v.StartView:
    return v.StartView(
        workflow_execution_id=answer.workflow_execution_id,
        workflow_id=answer.workflow_id,
        workflow_created=answer.workflow_created,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


def _changed(answer: ex.Changed) -> v.ChangedView:
    return v.ChangedView(changed=answer.changed, successor=answer.successor)
