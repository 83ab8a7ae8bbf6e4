"""Forget what is over: idempotency keys, events that are kept no longer, settlements nobody came for."""

from __future__ import annotations

from holdfast.engine.operation import Operation
from holdfast.engine.rules import messages
from holdfast.engine.rules.workspace import Workspace
from holdfast.store.protocol import LoadPlan

PAGE = 1_000


class Forget(Operation[None, bool]):
    """Answers whether there is more."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.expired_events = PAGE

    def decide(self, ws: Workspace) -> bool:
        ws.changes.forget_requests_before = ws.now
        ws.changes.forget_messages_before = ws.now
        for event in ws.loaded.expired_events:
            if event.id in ws.loaded.published:
                messages.drop(ws, event, "expired")
        return len(ws.loaded.expired_events) >= PAGE
