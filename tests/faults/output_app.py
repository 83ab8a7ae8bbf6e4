"""A task that speaks and is killed for it: `python -m tests.faults.output_app ROLE OPTIONS`.

Everything else is as in `tests.faults.app`.
"""

from __future__ import annotations

from holdfast import RetryPolicy, TaskContext, task
from tests.faults import app


@task(retry=RetryPolicy(initial_interval_s=0.01, jitter=False))
def speaks(ctx: TaskContext, words: int) -> int:
    for number in range(words):
        ctx.emit([ctx.info.attempt, number])
    app.write_line("spoken", ctx.info.attempt)
    app.pass_gate("gate")
    return ctx.info.attempt


TASKS = (speaks,)


def main() -> None:
    app.WORKFLOWS, app.TASKS = (), TASKS  # type: ignore[assignment]
    app.main()


if __name__ == "__main__":
    # As the module the tests import, so that functions have the same names in both.
    from tests.faults import output_app

    output_app.main()
