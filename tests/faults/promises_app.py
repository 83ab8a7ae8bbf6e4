"""Orders for the fault tests of promises and deferred tasks: `python -m tests.faults.promises_app ROLE OPTIONS`.

Everything else is as in `tests.faults.app`.
"""

from __future__ import annotations

from typing import Any

from holdfast import RetryPolicy, TaskContext, WorkflowContext, task, workflow
from tests.faults import app


def ask(number: int, token: str) -> None:
    """What a payment provider would be told."""
    app.write_line("asked", number, token)


@task(retry=RetryPolicy(initial_interval_s=0.05, max_interval_s=0.2))
async def ship(ctx: TaskContext, number: int) -> Any:
    """Left to a carrier, who has the token."""
    app.write_line("shipping", number, ctx.complete_later())


@workflow
async def order(ctx: WorkflowContext, number: int) -> list[object]:
    payment = ctx.promise("payment")
    await ctx.run(ask, number, payment.token)
    return [await payment, await ctx.task(ship, number)]


WORKFLOWS = (order,)
TASKS = (ship,)


def main() -> None:
    app.WORKFLOWS, app.TASKS = WORKFLOWS, TASKS  # type: ignore[assignment]
    app.main()


if __name__ == "__main__":
    main()
