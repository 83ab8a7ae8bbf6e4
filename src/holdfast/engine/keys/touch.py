"""Note that a key is in use: now and then, not at every call."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import put_key
from holdfast.engine.rules.unit_of_work import UnitOfWork
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
        plan.keys.add(self.request)

    def decide(self, uow: UnitOfWork) -> None:
        key = uow.loaded.keys.get(self.request)
        if key is not None and key.is_valid_at(uow.now) and is_stale(key, uow.now):
            put_key(uow, structs.replace(key, last_used_at=uow.now))
