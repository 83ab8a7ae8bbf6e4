"""Why one execution does not move, for commands. The thinking is done in `holdfast.explaining`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.contract.explanations import Finding, Level
from holdfast.explaining.executions import LATE, UNCLAIMED, Examined, Sessions, findings, read_sessions
from holdfast.explaining.executions import examine as examine_execution

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.contract.execution_reads import ExecutionInfo

__all__ = ["LATE", "UNCLAIMED", "Examined", "Finding", "Level", "Sessions", "examine", "findings", "sessions_of"]


async def examine(client: Client, execution: ExecutionInfo, now: int) -> Examined:
    return await examine_execution(client.api, execution, org=client.org, now=now)


async def sessions_of(client: Client, now: int) -> Sessions:
    return await read_sessions(client.api, client.org, now)
