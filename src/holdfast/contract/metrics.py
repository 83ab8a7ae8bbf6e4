"""Metrics: what a door shows to whoever scrapes them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol


class Metrics(Protocol):
    def page(self, org: str | None = None) -> Awaitable[str]:
        """All metrics of this process, and what waits in the database, as Prometheus reads them (`text/plain;
        version=0.0.4`). With an org, nothing that names another one."""
        ...
