"""Why one execution does not move, for commands. The thinking is done in `holdfast.diagnostics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.contract.explanations import Finding, Level
from holdfast.diagnostics.executions import LATE, UNCLAIMED, Examined, Sessions, Sources, findings, read_sessions
from holdfast.diagnostics.executions import examine as examine_sources

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.model.executions import Execution

__all__ = ["LATE", "UNCLAIMED", "Examined", "Finding", "Level", "Sessions", "examine", "findings", "sessions_of"]


async def examine(client: Client, execution: Execution, now: int) -> Examined:
    sources = Sources(client.executions, client.messages, client.deployments, client.org)
    return await examine_sources(sources, execution, now=now)


async def sessions_of(client: Client, now: int) -> Sessions:
    assert client.deployments is not None, "the client of a command has all nouns"
    return await read_sessions(client.deployments, client.org, now)
