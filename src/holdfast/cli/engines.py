"""An engine as commands need it: to look without touching."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from holdfast.assembly import Engine
from holdfast.engine.cursors import Cursors
from holdfast.engine.facade import LocalEngine
from holdfast.services.loops import Service


class LookingEngine(Engine):
    """Fires no timer, takes back no lease: what is looked at stays as it is."""

    def _begin(self, services: Iterable[Service]) -> None:
        """Nothing is begun."""

    def _make_local(self, url: str) -> LocalEngine:
        """Its cursors last as long as the command: a look at a list makes no key file."""
        local = super()._make_local(url)
        local.cursors = Cursors(lambda: secrets.token_bytes(32))
        return local
