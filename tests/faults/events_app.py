"""Publishers and collectors of events in processes of their own: `python -m tests.faults.events_app ROLE OPTIONS`.

Everything else is as in `tests.faults.app`.
"""

from __future__ import annotations

from typing import Any

from holdfast import WorkflowContext, workflow
from tests.faults import app

END = -1
SHARERS = 3


@workflow
async def collect(ctx: WorkflowContext, count: int) -> list[int]:
    """So many events, each of which every collector gets."""
    return [await ctx.wait_for_event("all", int) for _ in range(count)]


@workflow
async def collect_even(ctx: WorkflowContext, count: int) -> list[int]:
    return [await ctx.wait_for_event("all", int, where="input % 2 == 0") for _ in range(count // 2)]


@workflow
async def share(ctx: WorkflowContext) -> list[int]:
    """Events of which each goes to one sharer, until an end comes."""
    got: list[int] = []
    while not got or got[-1] != END:
        got.append(await ctx.wait_for_event("one", int, consume_on_read=True))
    return got


@workflow(start_on="start")
async def started(ctx: WorkflowContext, number: int) -> int:
    return number


WORKFLOWS = (collect, collect_even, share, started)


async def publish(options: dict[str, Any]) -> None:
    """Publish everything; what was published before the kill is published again with the same key."""
    async with app.engine_of(options, working=True) as engine:
        client = engine.client
        print("ready", flush=True)
        for kind in ("collect", "collect_even"):
            await client.start_workflow(kind, options["count"], workflow_id=kind, request_id=kind)
        for sharer in range(SHARERS):
            await client.start_workflow("share", workflow_id=f"share-{sharer}", request_id=f"share-{sharer}")
        for number in range(options["count"]):
            for key in ("all", "start"):
                await client.publish_event(key, number, idempotency_key=f"{key}-{number}")
            await client.publish_event("one", number, idempotency_key=f"one-{number}", consume_on_read=True)
            app.write_line("published", number)
        for sharer in range(SHARERS):
            await client.publish_event("one", END, idempotency_key=f"end-{sharer}", consume_on_read=True)
        for name in ("collect", "collect_even", *(f"share-{sharer}" for sharer in range(SHARERS))):
            await (await client.find_workflow(name)).result()
        app.write_line("done", options["count"])


def main() -> None:
    app.WORKFLOWS, app.TASKS = WORKFLOWS, ()  # type: ignore[assignment]
    app.ROLES["publish"] = publish
    app.main()


if __name__ == "__main__":
    # As the module the tests import, so that functions have the same names in both.
    from tests.faults import events_app

    events_app.main()
