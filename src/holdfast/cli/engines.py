"""Engines as commands need them: to look without touching, and to reach what an application does not need."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from holdfast.assembly import Engine
from holdfast.contract.keys import Keys
from holdfast.engine.cursors import Cursors
from holdfast.engine.facade import LocalEngine
from holdfast.services.service import Service


class OperatorEngine(Engine):
    """An engine whose operator has the database itself."""

    @property
    def keys(self) -> Keys:
        return self._local.keys


class ReadOnlyEngine(OperatorEngine):
    """Fires no timer, takes back no lease: what is looked at stays as it is."""

    def _start_services(self, services: Iterable[Service]) -> None:
        """Nothing is begun."""

    def _make_local(self, url: str) -> LocalEngine:
        """Its cursors last as long as the command: a look at a list makes no key file."""
        local = super()._make_local(url)
        local.cursors = Cursors(lambda: secrets.token_bytes(32))
        return local
