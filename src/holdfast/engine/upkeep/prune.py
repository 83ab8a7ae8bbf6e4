"""Forget what is over: idempotency keys, events that are kept no longer, settlements nobody came for. A page at once.

An event that nobody has got is dead for as long as it would have been kept; then it is forgotten, too.
"""

from __future__ import annotations

from holdfast.engine.idempotency import is_in_use
from holdfast.engine.operation import Operation
from holdfast.engine.rules import messages
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan

PAGE = 1_000


class Prune(Operation[None, bool]):
    """Answers whether there is more."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.expired_events = PAGE
        plan.expired_requests = PAGE

    def decide(self, uow: UnitOfWork) -> bool:
        self._forget_requests(uow)
        uow.changes.forget_messages_before = uow.now
        uow.changes.forget_dead_before = uow.now - int(uow.config.event_retention_s * MICRO)
        dropped = sum(messages.drop(uow, event, "expired") for event in uow.loaded.expired_events)
        return dropped >= PAGE or len(uow.loaded.expired_requests) >= PAGE

    def _forget_requests(self, uow: UnitOfWork) -> None:
        for key in uow.loaded.expired_requests:
            again = uow.loaded.requests.get(key)
            if again is None or not is_in_use(uow, again):
                uow.changes.deleted_requests.append(key)
