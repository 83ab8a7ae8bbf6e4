"""Who throws and who waits for the fault tests of broadcasts: `python -m tests.faults.broadcast_app ROLE OPTIONS`.

Everything else is as in `tests.faults.app`.
"""

from __future__ import annotations

import os
from typing import Any

from holdfast import WorkflowContext, workflow
from tests.faults import app
from tests.faults.waiting import KIND, NAME


@workflow(kind=KIND)
async def waits(ctx: WorkflowContext) -> None:
    await ctx.wait_for_broadcast(NAME)


@workflow
async def waits_again_and_again(ctx: WorkflowContext, count: int) -> list[str]:
    """Waits for one broadcast after the other, by two names at a time."""
    heard = []
    for _ in range(count):
        won = await ctx.race(ctx.wait_for_broadcast("left"), ctx.wait_for_broadcast("right"))
        heard.append("left" if won.index == 0 else "right")
    return heard


WORKFLOWS = (waits, waits_again_and_again)


async def throw(options: dict[str, Any]) -> None:
    """Throws one broadcast and writes down how many got it; begun again after a kill, it asks for the same."""
    async with app.engine_of(options, working=options.get("working", False)) as engine:
        print("ready", flush=True)
        thrown = await engine.client.broadcast(options.get("name", NAME), idempotency_key=options["key"])
        app.write_line("thrown", options["key"], thrown.broadcast_id, thrown.delivered, os.getpid())
    print("done", flush=True)


def main() -> None:
    app.WORKFLOWS, app.TASKS = WORKFLOWS, ()  # type: ignore[assignment]
    app.ROLES["throw"] = throw
    app.main()


if __name__ == "__main__":
    # As the module the tests import, so that functions have the same names in both.
    from tests.faults import broadcast_app

    broadcast_app.main()
