"""The sagas that the fault tests run in processes of their own: `python -m tests.faults.saga_app ROLE OPTIONS`.

Everything else is as in `tests.faults.app`.
"""

from __future__ import annotations

import os
import secrets

from holdfast import RetryPolicy, TaskContext, WorkflowContext, task, workflow
from tests.faults import app

QUICKLY = RetryPolicy(initial_interval_s=0.05, max_interval_s=0.2)
PLACES = ("a", "b", "c")


@task(retry=QUICKLY)
def book(ctx: TaskContext, place: str) -> str:
    """Begins, waits for its gate, and books under a number that is new at every call."""
    app.write_line("begun", "book", place, os.getpid())
    app.pass_gate(f"book-{place}")
    number = f"{place}-{secrets.token_hex(8)}"
    app.write_line("ledger", "book", number)
    return number


@task(retry=QUICKLY)
def cancel_booking(ctx: TaskContext, number: str) -> None:
    app.write_line("begun", "undo", number[0], os.getpid())
    app.pass_gate(f"undo-{number[0]}")
    app.write_line("ledger", "undo", number)


@task(retry=RetryPolicy(max_attempts=1))
def refuse() -> None:
    raise ValueError("sold out")


@workflow
async def trip(ctx: WorkflowContext) -> None:
    """Books everywhere, then fails."""
    async with ctx.saga() as saga:
        for place in PLACES:
            await saga.do(ctx.task(book, place), undo=lambda number: ctx.task(cancel_booking, number))
        await ctx.task(refuse)


WORKFLOWS = (trip,)
TASKS = (book, cancel_booking, refuse)


def main() -> None:
    app.WORKFLOWS, app.TASKS = WORKFLOWS, TASKS  # type: ignore[assignment]
    app.main()


if __name__ == "__main__":
    # As the module the tests import, so that functions have the same names in both.
    from tests.faults import saga_app

    saga_app.main()
