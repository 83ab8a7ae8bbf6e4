"""Note that a key is in use: now and then, not at every call."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from holdfast.engine.operation import Operation
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.keys import ApiKey
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan

USED_EVERY: Final = 300 * MICRO


def is_stale(key: ApiKey, now: int) -> bool:
    return key.last_used_at is None or now - key.last_used_at >= USED_EVERY


class Touch(Operation[str, None]):
    """The request is the key's id."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.want(ApiKey, self.request)

    def decide(self, ws: Workspace) -> None:
        key = ws.get(ApiKey, self.request)
        if key is not None and key.counts(ws.now) and is_stale(key, ws.now):
            ws.put(structs.replace(key, last_used_at=ws.now))
