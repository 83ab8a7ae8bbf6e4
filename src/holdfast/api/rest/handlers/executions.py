"""Executions: started, listed, looked at, ended, taken up again."""

from __future__ import annotations

from holdfast.api.rest.calls import Call, within
from holdfast.contract import executions as ex
from holdfast.contract.instants import micros_or_none
from holdfast.errors import InvalidRequest
from holdfast.model.events import HistoryEvent
from holdfast.wire.rest import bodies as b
from holdfast.wire.rest import views as v
from holdfast.wire.rest.events import event_view


async def list_workflows(call: Call) -> v.ExecutionPage:
    page = await call.nouns.executions.list(list_request(call.org, call.query, call.query.cursor))
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
    counts = await call.nouns.executions.count(call.org)
    return v.CountView(counts=counts, total=sum(counts.values()))


async def get_workflow(call: Call) -> v.ExecutionView:
    return v.execution_view(await call.nouns.executions.get(call.org, call.execution_id))


async def find_workflow(call: Call) -> v.ExecutionView:
    return v.execution_view(await call.nouns.executions.find(call.org, call.path["workflow_id"]))


async def workflow_history(call: Call) -> v.HistoryView:
    query: b.HistoryQuery = call.query
    executions = call.nouns.executions
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
    feed = call.nouns.feeds.history(call.org, call.execution_id, after)
    async for events in feed:
        if not wanted or any(event.type in wanted for event in events):
            return events
    return None


async def workflow_state(call: Call) -> v.StateView:
    return v.StateView(state=await call.nouns.executions.state(call.org, call.execution_id, call.query.as_of))


async def workflow_result(call: Call) -> v.ResultView:
    executions = call.nouns.executions
    execution = await executions.get(call.org, call.execution_id)
    if execution.is_open:
        outcome = await within(executions.outcome(call.org, call.execution_id), call.query.wait or 0.001)
        if outcome is None:
            return v.ResultView(workflow_execution_id=execution.id, status=execution.status, closed=False)
    else:
        outcome = await executions.outcome(call.org, call.execution_id)
    return v.result_view(execution.id, outcome)


async def workflow_tasks(call: Call) -> v.TaskList:
    rows = await call.nouns.executions.tasks(call.org, call.execution_id)
    return v.TaskList(tasks=tuple(v.task_view(row) for row in rows))


async def workflow_timers(call: Call) -> v.TimerList:
    rows = await call.nouns.executions.timers(call.org, call.execution_id)
    return v.TimerList(timers=tuple(v.timer_view(row) for row in rows))
