"""Forget what is over: idempotency keys, events that are kept no longer, settlements nobody came for. A page at once.

An event that nobody has got is dead for as long as it would have been kept; then it is forgotten, too.
"""

from __future__ import annotations

from holdfast.engine.idempotency import counts
from holdfast.engine.operation import Operation
from holdfast.engine.rules import messages
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.executions import RequestRow
from holdfast.model.messages import DeadEvent
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan

PAGE = 1_000


class Forget(Operation[None, bool]):
    """Answers whether there is more."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.expired_events = PAGE
        plan.expired_requests = PAGE

    def decide(self, ws: Workspace) -> bool:
        self._forget_requests(ws)
        ws.changes.forget_messages_before = ws.now
        ws.changes.forget_before[DeadEvent] = ws.now - int(ws.config.event_retention_s * MICRO)
        dropped = sum(messages.drop(ws, event, "expired") for event in ws.loaded.expired_events)
        return dropped >= PAGE or len(ws.loaded.expired_requests) >= PAGE

    def _forget_requests(self, ws: Workspace) -> None:
        for key in ws.loaded.expired_requests:
            again = ws.get(RequestRow, key)
            if again is None or not counts(ws, again):
                ws.drop(RequestRow, key)
