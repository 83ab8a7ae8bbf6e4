"""What the tests of promises, events and broadcasts share: an engine with hands outside the workflow.

Every run is replayed at the end: whole, and cut after each commit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast import Engine
from holdfast.client.handles import WorkflowHandle
from holdfast.contract import messages as ms
from holdfast.contract.failures import Rejection
from holdfast.model.events import HistoryEvent
from holdfast.model.payloads import encode
from holdfast.model.tokens import token_hash
from tests.conftest import OpenEngine, until
from tests.replay.recording import Commits, check_cuts, check_invariants, check_whole

ORG = "default"


class Outside:
    """The world around the workflows of one engine."""

    def __init__(self, engine: Engine, workflows: tuple[Callable[..., Any], ...]) -> None:
        self.engine = engine
        self.client = engine.client
        self._commits = Commits(engine)
        self._workflows = workflows
        self._started: list[tuple[Callable[..., Any], WorkflowHandle]] = []

    async def start(self, workflow: Callable[..., Any], input: Any = None, **options: Any) -> WorkflowHandle:
        handle = await self.client.start_workflow(workflow, input, **options)
        self._started.append((workflow, handle))
        return handle

    async def waiting(self, handle: WorkflowHandle, *waits: tuple[str, str]) -> None:
        """Until the workflow waits for exactly these: kinds and names."""

        async def does() -> bool:
            found = (await handle.describe()).waiting_for
            return sorted(waits) == sorted((wait.kind, wait.name) for wait in found)

        await until(does)

    async def resolve(self, promise_id: str, value: Any = None, **options: Any) -> ms.SettledPromise:
        return await self.client.api.call(
            ms.ResolvePromise(org=ORG, promise_id=promise_id, value=encode(value, field="value"), **options)
        )

    async def resolve_by_token(self, token: str, value: Any = None) -> ms.SettledPromise:
        return await self.client.api.call(
            ms.CompletePromise(org=ORG, token_hash=token_hash(token), value=encode(value, field="value"))
        )

    async def reject(self, promise_id: str, error_type: str, message: str) -> ms.SettledPromise:
        error = Rejection(type=error_type, message=message)
        return await self.client.api.call(ms.RejectPromise(org=ORG, promise_id=promise_id, error=error))

    async def publish(self, key: str, data: Any = None, **options: Any) -> ms.PublishResult:
        return await self.client.api.call(ms.PublishEvent(org=ORG, key=key, data=encode(data, field="data"), **options))

    async def send(self, name: str, correlation: str, data: Any = None) -> ms.SendResult:
        return await self.client.send_message(name, correlation, data)

    async def broadcast(self, name: str) -> ms.BroadcastResult:
        return await self.client.broadcast(name)

    async def result(self, handle: WorkflowHandle) -> Any:
        return await handle.result(timeout=20)

    async def check_replays(self) -> None:
        for workflow, handle in self._started:
            history = list(await handle.history())
            check_invariants(history)
            check_whole(workflow, history, handle.id)
            check_cuts(workflow, history, handle.id, self._commits.cuts(handle.id, len(history)))

    async def events(self, handle: WorkflowHandle) -> list[HistoryEvent]:
        return list(await handle.history())


async def outside(engine: OpenEngine, *workflows: Callable[..., Any], **options: Any) -> Outside:
    return Outside(await engine(workflows=workflows, **options), workflows)
