"""The smallest workflow: one step.

Run it: `python -m examples.hello`.
"""

from __future__ import annotations

import asyncio

from holdfast import Engine, WorkflowContext, workflow


def greet(name: str) -> str:
    """Ordinary code. As a step it may do whatever it likes: read a file, call a server, look at the clock."""
    return f"Hello, {name}!"


@workflow
async def hello(ctx: WorkflowContext, name: str) -> str:
    """The workflow decides; the step does.

    When the line below has been passed, the greeting is in the history. If the process stops right after it, the
    workflow goes on elsewhere with that same greeting, and `greet` is not called again.
    """
    return await ctx.run(greet, name)


async def main() -> None:
    # "sqlite://" is a database in memory, gone at the end. "sqlite:///hello.db" would be a file, and durable.
    async with Engine("sqlite://", workflows=[hello]) as engine:
        handle = await engine.client.start_workflow(hello, "world")
        print(await handle.result())


if __name__ == "__main__":
    asyncio.run(main())
