"""Engines as commands need them: to look without touching, and to reach what an application does not need."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.assembly import Engine
from holdfast.contract.keys import Keys
from holdfast.services.loops import Service


class OperatorEngine(Engine):
    """An engine whose operator has the database itself."""

    @property
    def keys(self) -> Keys:
        return self._local.keys


class LookingEngine(OperatorEngine):
    """Fires no timer, takes back no lease: what is looked at stays as it is."""

    def _begin(self, services: Iterable[Service]) -> None:
        """Nothing is begun."""
