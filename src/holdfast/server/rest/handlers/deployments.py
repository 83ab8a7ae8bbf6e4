"""What is deployed, who works, what waits."""

from __future__ import annotations

from holdfast.contract.deployments import ChangePause, Deployments
from holdfast.errors import RouteNotFound
from holdfast.model.pauses import Pausable, PauseMode
from holdfast.server.rest.calls import Call
from holdfast.transport.rest import system_views as sv


def _of(call: Call) -> Deployments:
    if call.engine_api.deployments is None:
        raise RouteNotFound
    return call.engine_api.deployments


async def list_definitions(call: Call) -> sv.DefinitionList:
    rows = await _of(call).definitions(call.org, call.query.limit)
    return sv.DefinitionList(definitions=tuple(sv.definition_view(row) for row in rows))


async def list_workers(call: Call) -> sv.WorkerList:
    rows = await _of(call).workers(call.org, call.query.limit)
    return sv.WorkerList(workers=tuple(sv.worker_view(row) for row in rows))


async def list_queues(call: Call) -> sv.QueueList:
    queues = await _of(call).queues(call.org, call.query.limit)
    return sv.QueueList(queues=tuple(sv.queue_view(queue) for queue in queues))


async def pause_queue(call: Call) -> sv.PauseAnswerView:
    return await _change(call, Pausable.QUEUE, PauseMode.PAUSED)


async def resume_queue(call: Call) -> sv.PauseAnswerView:
    return await _change(call, Pausable.QUEUE, None)


async def pause_worker(call: Call) -> sv.PauseAnswerView:
    return await _change(call, Pausable.WORKER, PauseMode.PAUSED)


async def resume_worker(call: Call) -> sv.PauseAnswerView:
    return await _change(call, Pausable.WORKER, None)


async def drain_worker(call: Call) -> sv.PauseAnswerView:
    return await _change(call, Pausable.WORKER, PauseMode.DRAINING)


async def _change(call: Call, what: Pausable, mode: PauseMode | None) -> sv.PauseAnswerView:
    name = call.path["queue" if what is Pausable.QUEUE else "worker_id"]
    request = ChangePause(
        org=call.org,
        what=what,
        name=name,
        mode=mode,
        reason=call.body.reason,
        by=call.principal,
        address=call.address,
    )
    return sv.pause_answer_view(name, await _of(call).change_pause(request))
