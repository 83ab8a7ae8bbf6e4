"""`holdfast workflow …`: one module per kind of command, loaded when it is used."""

from __future__ import annotations

from typing import Final

import click

from holdfast.cli.lazy import LazyGroup

_HERE: Final = "holdfast.cli.workflow"
COMMANDS: Final = {
    "start": (f"{_HERE}.start:start", "Start a workflow."),
    "list": (f"{_HERE}.listing:list_", "List executions, the newest first."),
    "show": (f"{_HERE}.show:show", "Show one: what it waits for, what is wrong, what to do."),
    "history": (f"{_HERE}.inspect:history", "Show its events."),
    "watch": (f"{_HERE}.watch:watch", "Follow its events until it ends."),
    "result": (f"{_HERE}.inspect:result", "Wait for its end and print the result."),
    "signal": (f"{_HERE}.start:signal", "Send it a signal."),
    "signal-with-start": (f"{_HERE}.start:signal_with_start", "Signal a workflow id, starting it if need be."),
    "query": (f"{_HERE}.call:query", "Ask its program something."),
    "update": (f"{_HERE}.call:update", "Let its program change something and answer."),
    "mailbox": (f"{_HERE}.inspect:mailbox", "Show the signals it has not read."),
    "cancel": (f"{_HERE}.modify:cancel", "Ask it to stop; its code may clean up."),
    "terminate": (f"{_HERE}.modify:terminate", "End it at once; its code is not asked."),
    "resume": (f"{_HERE}.modify:resume", "Let a stuck one be tried again now."),
    "retry": (f"{_HERE}.modify:retry", "Try a closed one again from just before what ended it."),
    "reset": (f"{_HERE}.modify:reset", "Go on from an earlier event, in a new execution."),
    "fork": (f"{_HERE}.modify:fork", "Begin another execution with its past up to an event."),
}


@click.command(cls=LazyGroup, table=COMMANDS)
def workflow() -> None:
    """Start, look at, signal, end and redo workflows.

    ID is an execution id or a workflow id; of a workflow id, its open execution is meant, or the last one.
    """
