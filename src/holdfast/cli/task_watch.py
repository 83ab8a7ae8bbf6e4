"""`holdfast task watch`: what a task says, how far it is and how it ends, as it happens.

What the task says goes to standard output and nothing else does, so that it can be passed on; what is said about the
task goes to standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import click

from holdfast.cli.doors import Door, connected, found
from holdfast.cli.exits import NO_RESULT
from holdfast.cli.inputs import LENGTH

if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.client.client import Client
    from holdfast.contract.task_output import TaskEnd, TaskNews


@click.command()
@click.argument("id_", metavar="ID")
@click.argument("task_no", metavar="[TASK_NO]", type=click.IntRange(1), required=False)
@click.option("--after", type=click.IntRange(0), default=0, help="Only what was said after this number.")
@click.option(
    "--raw", is_flag=True, help="Texts as they are, one right after the other: for words of a language model."
)
@click.option("--timeout", type=LENGTH, help="Stop watching after this long.")
@connected
def watch(door: Door, id_: str, *, task_no: int | None, after: int, raw: bool, timeout: float | None) -> None:
    """Show what task TASK_NO of the execution ID says, and its progress, until it ends.

    Without a number, ID is a standalone task. With --json, one object on each line. Ends with 0 when the task has
    completed, with 5 when it has ended otherwise.
    """
    from holdfast.client.calls import within
    from holdfast.contract.task_output import TaskEnd

    async def run(client: Client) -> TaskEnd | None:
        execution_id, number = await _place(client, id_, task_no)
        with _Lines(door.out, raw=raw) as lines:
            return await within(_follow(client, execution_id, number, after, lines), timeout)

    if door.run(run) is not TaskEnd.COMPLETED:
        raise click.exceptions.Exit(NO_RESULT)


async def _place(client: Client, id_: str, task_no: int | None) -> tuple[str, int]:
    from holdfast.contract.tasks import GetTask
    from holdfast.model.standalone import TASK_NO

    if task_no is not None:
        return (await found(client, id_)).id, task_no
    return (await client.api.call(GetTask(org=client.org, task_id=id_))).workflow_execution_id, TASK_NO


async def _follow(client: Client, execution_id: str, task_no: int, after: int, lines: _Lines) -> TaskEnd | None:
    """How it ended."""
    from holdfast.contract.task_output import StreamTask

    end: TaskEnd | None = None
    request = StreamTask(org=client.org, workflow_execution_id=execution_id, task_no=task_no, after=after)
    async for news in client.api.stream(request):
        for one in news:
            lines.tell(one)
            end = one.status or None
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

    def tell(self, news: TaskNews) -> None:
        from holdfast.contract.task_output import TaskNewsKind

        if self._out.as_json:
            self._out.item(news)
        elif news.kind is TaskNewsKind.OUTPUT:
            self._say(news)
        elif news.kind is TaskNewsKind.PROGRESS:
            self._advance(news.progress or 0.0)
        else:
            self._note(_words(news))

    def _say(self, news: TaskNews) -> None:
        text = _text(bytes(news.value or b"null"), raw=self._raw)
        if news.dropped:
            self._note(f"{news.dropped} chunks before this one are not kept")
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


def _words(news: TaskNews) -> str:
    from holdfast.cli.words import failure

    if news.status:
        return f"{news.status}{f': {failure(news.failure)}' if news.failure else ''}"
    before = f"; the one before: {failure(news.failure)}" if news.failure else ""
    return f"attempt {news.attempt}{before}"


def _text(data: bytes, *, raw: bool) -> str:
    """A text as it is, any other value as JSON. Nothing in it is obeyed by the terminal."""
    import msgspec

    from holdfast.cli.words import clean

    value = msgspec.json.decode(data)
    text = value if isinstance(value, str) else data.decode()
    return "\n".join(clean(line) for line in text.split("\n")) if raw else clean(text)
