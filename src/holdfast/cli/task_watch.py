"""`holdfast task watch`: what a task says, how far it is and how it ends, as it happens.

What the task says goes to standard output and nothing else does, so that it can be passed on; what is said about the
task goes to standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import click

from holdfast.cli.exit_codes import NO_RESULT
from holdfast.cli.inputs import LENGTH
from holdfast.cli.target import Target, connected, found

if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.client.client import Client
    from holdfast.contract.task_output import TaskEnd, TaskFeedItem


@click.command()
@click.argument("id_", metavar="ID")
@click.argument("task_no", metavar="[TASK_NO]", type=click.IntRange(1), required=False)
@click.option("--after", type=click.IntRange(0), default=0, help="Only what was said after this number.")
@click.option(
    "--raw", is_flag=True, help="Texts as they are, one right after the other: for words of a language model."
)
@click.option("--timeout", type=LENGTH, help="Stop watching after this long.")
@connected
def watch(target: Target, id_: str, *, task_no: int | None, after: int, raw: bool, timeout: float | None) -> None:
    """Show what task TASK_NO of the execution ID says, and its progress, until it ends.

    Without a number, ID is a standalone task. With --json, one object on each line. Ends with 0 when the task has
    completed, with 5 when it has ended otherwise.
    """
    from holdfast.client.calls import within
    from holdfast.contract.task_output import TaskEnd

    async def run(client: Client) -> TaskEnd | None:
        execution_id, number = await _place(client, id_, task_no)
        with _Lines(target.out, raw=raw) as lines:
            return await within(_follow(client, execution_id, number, after, lines), timeout)

    if target.run(run) is not TaskEnd.COMPLETED:
        raise click.exceptions.Exit(NO_RESULT)


async def _place(client: Client, id_: str, task_no: int | None) -> tuple[str, int]:
    from holdfast.model.standalone import TASK_NO

    if task_no is not None:
        return (await found(client, id_)).id, task_no
    return (await client.tasks.get(client.org, id_)).workflow_execution_id, TASK_NO


async def _follow(client: Client, execution_id: str, task_no: int, after: int, lines: _Lines) -> TaskEnd | None:
    """How it ended."""
    end: TaskEnd | None = None
    async for item in client.executions.follow_task(client.org, execution_id, task_no, after):
        for one in item:
            lines.show(one)
            end = one.status
    return end


class _Lines:
    """One line for each, and a bar for the progress where a terminal can draw one."""

    def __init__(self, out: Output, *, raw: bool) -> None:
        self._out = out
        self._raw = raw
        self._in_line = False
        self._bar: _Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_line()
        if self._bar is not None:
            self._bar.stop()

    def show(self, item: TaskFeedItem) -> None:
        from holdfast.contract.task_output import TaskFeedItemKind
        from holdfast.transport.rest.task_output_views import feed_item_view

        if self._out.as_json:
            self._out.item(feed_item_view(item))
        elif item.kind is TaskFeedItemKind.OUTPUT:
            self._print(item)
        elif item.kind is TaskFeedItemKind.PROGRESS:
            self._advance(item.progress or 0.0)
        else:
            self._note(_text_of(item))

    def _print(self, item: TaskFeedItem) -> None:
        text = _text(bytes(item.data), raw=self._raw)
        if item.dropped:
            self._note(f"{item.dropped} chunks before this one are not kept")
        if not self._raw:
            self._out.line(text)
            return
        click.echo(text, nl=False)
        self._in_line = not text.endswith("\n")

    def _note(self, text: str) -> None:
        self._end_line()
        self._out.note(f"-- {text}")

    def _end_line(self) -> None:
        if self._in_line:
            click.echo()
        self._in_line = False

    def _advance(self, progress: float) -> None:
        if self._bar is None and not self._raw:
            self._bar = _Bar.on(self._out)
        if self._bar is None:
            self._note(f"progress {progress:.0%}")
        else:
            self._bar.show(progress)


class _Bar:
    """Drawn by rich below what is printed."""

    def __init__(self, out: Output) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn

        self._bars = Progress(BarColumn(), TaskProgressColumn(), console=out.console, transient=True)
        self._bars.start()
        self._task = self._bars.add_task("", total=1.0)

    @classmethod
    def on(cls, out: Output) -> _Bar | None:
        return None if out.console is None else cls(out)

    def show(self, progress: float) -> None:
        self._bars.update(self._task, completed=min(max(progress, 0.0), 1.0))

    def stop(self) -> None:
        self._bars.stop()


def _text_of(item: TaskFeedItem) -> str:
    from holdfast.cli.formatting import failure

    if item.status is not None:
        return f"{item.status}{f': {failure(item.failure)}' if item.failure is not None else ''}"
    before = f"; the one before: {failure(item.failure)}" if item.failure is not None else ""
    return f"attempt {item.attempt}{before}"


def _text(data: bytes, *, raw: bool) -> str:
    """A text as it is, any other value as JSON. Nothing in it is obeyed by the terminal."""
    import msgspec

    from holdfast.cli.formatting import clean

    value = msgspec.json.decode(data)
    text = value if isinstance(value, str) else data.decode()
    return "\n".join(clean(line) for line in text.split("\n")) if raw else clean(text)
