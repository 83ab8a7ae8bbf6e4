"""Forget request ids whose time is over."""

from __future__ import annotations

from holdfast.engine.operation import Operation
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan


class Forget(Operation[None, None]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        """Needs nothing loaded."""

    def decide(self, ws: Workspace) -> None:
        ws.changes.forget_requests_before = ws.now - int(ws.config.request_ttl_s * MICRO)
