"""`contract.deployments.Deployments` over HTTP. Who asks, and from where, the server knows by itself."""

from __future__ import annotations

from typing import Final

from holdfast.client.remote.http_client import HttpClient, escaped
from holdfast.contract import deployments as dp
from holdfast.model.executions import DefinitionRow
from holdfast.model.pauses import Pausable, PauseMode
from holdfast.model.validation import check_name
from holdfast.transport.rest import system_views as sv

_VERBS: Final = {None: "resume", PauseMode.PAUSED: "pause", PauseMode.DRAINING: "drain"}


class HttpDeployments:
    def __init__(self, http_client: HttpClient) -> None:
        self._http = http_client

    async def definitions(self, org: str, limit: int = 1000) -> list[DefinitionRow]:
        found = await self._http.get(f"{_org(org)}/definitions", sv.DefinitionList, {"limit": limit})
        return [sv.read_definition(view, org) for view in found.definitions]

    async def workers(self, org: str, limit: int = 1000) -> list[dp.WorkerView]:
        found = await self._http.get(f"{_org(org)}/workers", sv.WorkerList, {"limit": limit})
        return [sv.read_worker(view, org) for view in found.workers]

    async def queues(self, org: str, limit: int = 1000) -> list[dp.QueueView]:
        found = await self._http.get(f"{_org(org)}/queues", sv.QueueList, {"limit": limit})
        return [sv.read_queue(view, org) for view in found.queues]

    async def change_pause(self, request: dp.ChangePause) -> dp.PauseAnswer:
        check_name(request.name, "queue" if request.what is Pausable.QUEUE else "worker_id")
        path = f"{_org(request.org)}/{request.what.value}s/{escaped(request.name)}/{_VERBS[request.mode]}"
        view = await self._http.post(path, sv.PauseBody(reason=request.reason), sv.PauseAnswerView)
        pause = sv.read_pause(view.pause, request.org, request.what, request.name)
        return dp.PauseAnswer(changed=view.changed, pause=pause)


def _org(org: str) -> str:
    return f"/api/orgs/{escaped(org)}"
