"""Queries, updates and the mailbox: what a program is asked, and what it has not read."""

from __future__ import annotations

import msgspec

from holdfast.contract import calls as cl
from holdfast.contract import executions as ex
from holdfast.model.values import NULL
from holdfast.server.rest.calls import Call, within
from holdfast.transport.rest import bodies as b
from holdfast.transport.rest import views as v


async def query_workflow(call: Call) -> v.QueryView:
    body: b.QueryBody = call.body
    has_input = not isinstance(body.input, msgspec.UnsetType)
    request = cl.QueryExecution(
        org=call.org,
        workflow_execution_id=call.execution_id,
        query_name=body.query_name,
        input=NULL if isinstance(body.input, msgspec.UnsetType) else body.input,
        has_input=has_input,
        as_of=body.as_of,
    )
    return v.QueryView(result=await call.engine_api.executions.query(request))


async def update_workflow(call: Call) -> v.UpdateView:
    body: b.UpdateBody = call.body
    ticket = await call.engine_api.executions.request_update(
        cl.RequestUpdate(
            org=call.org,
            workflow_execution_id=call.execution_id,
            update_name=body.update_name,
            input=body.input,
            update_id=body.update_id,
            request_id=call.request_id(),
        )
    )
    return await _outcome(call, ticket, body.wait_for, body.wait)


async def get_update(call: Call) -> v.UpdateView:
    query: b.UpdateQuery = call.query
    ticket = cl.UpdateTicket(call.execution_id, call.path["update_id"], query.sequence)
    return await _outcome(call, ticket, query.wait_for, query.wait)


async def _outcome(call: Call, ticket: cl.UpdateTicket, wait_for: cl.UpdateStatus, wait: float) -> v.UpdateView:
    executions = call.engine_api.executions
    outcome = await within(executions.update_outcome(call.org, ticket, wait_for), wait) if wait else None
    if outcome is None:
        outcome = await executions.update_outcome(call.org, ticket, cl.UpdateStatus.REQUESTED)
    return v.update_view(outcome, ticket.update_event_sequence or None)


async def workflow_mailbox(call: Call) -> v.MailboxView:
    answer = await call.engine_api.executions.mailbox(call.org, call.execution_id, call.query.limit)
    return v.mailbox_view(answer)


async def bury_unread(call: Call) -> v.BuriedView:
    request = ex.DeadLetterUnread(org=call.org, workflow_execution_id=call.execution_id, reason=call.body.reason)
    return v.BuriedView(buried=await call.engine_api.executions.dead_letter_unread(request))


async def workflow_dead_letters(call: Call) -> v.DeadLetterList:
    executions = call.engine_api.executions
    answer = await executions.dead_letters(call.org, call.execution_id, call.query.limit)
    if not answer.letters:
        await executions.get(call.org, call.execution_id)
    return v.dead_letters_view(answer)


async def list_dead_letters(call: Call) -> v.DeadLetterList:
    return v.dead_letters_view(await call.engine_api.executions.dead_letters(call.org, None, call.query.limit))


async def redeliver_dead_letter(call: Call) -> v.RedeliveredView:
    answer = await call.engine_api.executions.redeliver(
        ex.RedeliverSignal(
            org=call.org, workflow_execution_id=call.execution_id, seq=call.number("sequence"), to=call.body.to
        )
    )
    return v.RedeliveredView(
        workflow_execution_id=answer.workflow_execution_id, signal_event_sequence=answer.signal_event_sequence
    )


async def remove_dead_letter(call: Call) -> None:
    await call.engine_api.executions.remove_dead_letter(
        ex.RemoveDeadLetter(org=call.org, workflow_execution_id=call.execution_id, seq=call.number("sequence"))
    )
