"""Show the workflows of the demo, or one of them with its history, from another terminal.

Run it: `python -m examples.show` or `python -m examples.show ORDER-1`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

from examples.lines import Story, clock, paint, task_line, waits_line
from examples.run import add_db_option, url_of
from holdfast import Engine, ExecutionInfo, HoldfastError, WorkflowHandle


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.show", description="Show workflows.")
    add_db_option(parser)
    parser.add_argument("workflow_id", nargs="?", help="which one; all of them if left out")
    options = parser.parse_args()
    if isinstance(options.db, Path) and not options.db.exists():
        sys.exit(f"there is no {options.db}: start the demo first (make run)")
    try:
        asyncio.run(show(options.db, options.workflow_id))
    except HoldfastError as error:
        sys.exit(str(error))


async def show(db: Path | str, workflow_id: str | None) -> None:
    async with Engine(url_of(db)) as engine:
        if workflow_id is None:
            async for view in engine.client.iter_workflows():
                print(f"{view.workflow_id:<18} {view.status:<10} {view.history_length:>4} events  {state(view)}")
        else:
            await show_one(await engine.client.find_workflow(workflow_id))


async def show_one(handle: WorkflowHandle) -> None:
    view = await handle.describe()
    print(f"{view.workflow_id}: {view.kind}, execution {view.workflow_execution_id}")
    print(f"status   {view.status}")
    if state(view):
        print(f"state    {state(view)}")
    now = datetime.now(UTC)
    for task in await handle.pending_tasks():
        print(f"         {task_line(task, now)}")
    print("\n   #  time      event                     what")
    story = Story()
    for event in await handle.history():
        what, colour = story.line(event)
        print(f"{event.seq:>4}  {clock(event.at)}  {event.type:<24}  {paint(what, colour)}")


def state(view: ExecutionInfo) -> str:
    """Why it does not move: stuck, or waiting."""
    if view.stuck is not None:
        return f"stuck ({view.stuck.code}): {view.stuck.message}"
    return f"waits for {waits_line(view.waiting_for)}" if view.waiting_for else ""


if __name__ == "__main__":
    main()
