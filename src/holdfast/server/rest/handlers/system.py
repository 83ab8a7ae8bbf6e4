"""The server about itself."""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.errors import RouteNotFound, StorageBusy
from holdfast.server.rest.calls import Call
from holdfast.transport.rest import system_views as sv
from holdfast.transport.rest.times import instant

READY_S: Final = 2.0


async def who_am_i(call: Call) -> sv.MeView:
    who = call.principal
    assert who is not None, "the operation has a role"
    return sv.MeView(
        org=who.org,
        role=who.role,
        key_id=who.key_id,
        payload_bytes=call.engine_api.payload_bytes,
        now=instant(call.engine_api.upkeep.now()),
    )


async def metrics(call: Call) -> bytes:
    who = call.principal
    if call.engine_api.metrics is None:
        raise RouteNotFound("this server counts nothing: TelemetryConfig(metrics=True) would")
    page: str = await call.engine_api.metrics.page(None if who is None or who.key_id is None else who.org)
    return page.encode()


async def recover(call: Call) -> sv.RecoveryView:
    return sv.recovery_view(await call.engine_api.upkeep.recover(call.org))


async def healthz(call: Call) -> sv.HealthView:  # noqa: ARG001 - every handler takes one
    return sv.HealthView(status="alive")


async def readyz(call: Call) -> sv.HealthView:
    """Asks the database something small; what it raises is the answer. Whoever probes does not wait for long."""
    try:
        async with asyncio.timeout(READY_S):
            await call.engine_api.messages.events("default", None, None, 1)
    except TimeoutError:
        raise StorageBusy(f"the database did not answer within {READY_S:g} s") from None
    return sv.HealthView(status="ready")
