"""What is deployed, who works, what waits."""

from __future__ import annotations

from holdfast.api.rest.calls import Call
from holdfast.contract.deployments import Deployments
from holdfast.errors import RouteNotFound
from holdfast.wire.rest import system_views as sv


def _of(call: Call) -> Deployments:
    if call.nouns.deployments is None:
        raise RouteNotFound
    return call.nouns.deployments


async def list_definitions(call: Call) -> sv.DefinitionList:
    rows = await _of(call).definitions(call.org, call.query.limit)
    return sv.DefinitionList(definitions=tuple(sv.definition_view(row) for row in rows))


async def list_workers(call: Call) -> sv.WorkerList:
    rows = await _of(call).workers(call.org, call.query.limit)
    return sv.WorkerList(workers=tuple(sv.worker_view(row) for row in rows))


async def list_queues(call: Call) -> sv.QueueList:
    queues = await _of(call).queues(call.org, call.query.limit)
    return sv.QueueList(queues=tuple(sv.queue_view(queue) for queue in queues))
