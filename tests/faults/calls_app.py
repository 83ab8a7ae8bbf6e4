"""The account for the fault tests of updates, in processes of its own: `python -m tests.faults.calls_app ROLE OPTIONS`.

Everything else is as in `tests.faults.app`.
"""

from __future__ import annotations

import os

from holdfast import RetryPolicy, TaskContext, WorkflowContext, query, task, update, workflow
from tests.faults import app


@task(retry=RetryPolicy(initial_interval_s=0.05, max_interval_s=0.2))
def book(ctx: TaskContext, amount: int) -> int:
    """Begins, waits for its gate, and gives the amount back."""
    app.write_line("begun", amount, os.getpid())
    app.pass_gate("book")
    return amount


@workflow
class Account:
    def __init__(self) -> None:
        self.balance = 0
        self.entries: list[int] = []

    async def run(self, ctx: WorkflowContext) -> int:
        await ctx.wait_for_signal("close")
        await ctx.wait_until(ctx.all_handlers_finished)
        return self.balance

    @query
    def so_far(self) -> list[int]:
        return self.entries

    @update
    async def pay_in(self, ctx: WorkflowContext, amount: int) -> int:
        """Accepted at once, done when the task is."""
        booked = await ctx.task(book, amount)
        self.balance += booked
        self.entries.append(booked)
        return self.balance

    @pay_in.validator
    def is_money(self, amount: int) -> None:
        if amount <= 0:
            raise ValueError("not money")


WORKFLOWS = (Account,)
TASKS = (book,)


def main() -> None:
    app.WORKFLOWS, app.TASKS = WORKFLOWS, TASKS  # type: ignore[assignment]
    app.main()


if __name__ == "__main__":
    # As the module the tests import, so that functions have the same names in both.
    from tests.faults import calls_app

    calls_app.main()
