"""What a command prints: JSON for scripts; tables and lines for people, drawn by rich on a terminal if it is installed.

On a terminal there are colours unless NO_COLOR is set; elsewhere there are none unless FORCE_COLOR is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from holdfast.cli.formatting import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


class Cell(NamedTuple):
    """A text with a style of rich's."""

    text: str
    style: str = ""


Shown = str | Cell

STATUS_STYLES = {
    "PENDING": "yellow",
    "RUNNING": "blue",
    "WAITING": "cyan",
    "STUCK": "bold red",
    "COMPLETED": "green",
    "FAILED": "red",
    "CANCELLED": "magenta",
    "TERMINATED": "magenta",
    "TIMED_OUT": "red",
    "CONTINUED": "dim",
}
LABEL = 11
NARROW = 24
"""Columns up to this width are never cut: a status of which half is missing says nothing."""


def status_cell(status: str) -> Cell:
    return Cell(str(status), STATUS_STYLES.get(str(status), ""))


class Output:
    """How one command answers. `as_json`: documents on standard output, and nothing else there."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    # --- for scripts ---

    def document(self, view: Any) -> None:
        """The one answer of a command."""
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(view), indent=2))

    def item(self, view: Any) -> None:
        """One of many answers, on a line of its own."""
        import msgspec

        click.echo(msgspec.json.encode(view))

    def answer(self, view: Any, text: str) -> None:
        """The document, or a sentence that says the same."""
        if self.as_json:
            self.document(view)
        else:
            self.line(text)

    # --- for people ---

    @property
    def width(self) -> int | None:
        """Of the terminal; None where there is none."""
        return None if self.console is None else self.console.width

    def line(self, *cells: Shown) -> None:
        if self.console is not None:
            self.console.print(*(_text(cell) for cell in cells), sep="", soft_wrap=True)
        else:
            click.echo("".join(_plain(cell) for cell in cells))

    def blank(self) -> None:
        click.echo()

    def heading(self, text: str) -> None:
        self.blank()
        self.line(Cell(text, "bold"))

    def field(self, label: str, *cells: Shown) -> None:
        self.line(Cell(f"{label:<{LABEL}} ", "dim"), *cells)

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[Shown]], *, empty: str = "") -> None:
        listed = [list(row) for row in rows]
        if not listed:
            if empty:
                self.line(Cell(empty, "dim"))
            return
        if self.console is not None:
            self._draw(headers, listed)
        else:
            for text in _columns(headers, listed):
                click.echo(text)

    def note(self, text: str) -> None:
        """What concerns the reader and not the answer: to standard error."""
        click.echo(clean(text), err=True)

    def json_text(self, payload: bytes) -> None:
        """A value as readable JSON, exactly as it is stored but for the spaces."""
        import msgspec

        click.echo(msgspec.json.format(payload, indent=2))

    @contextmanager
    def progress(self, label: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """A bar on standard error while long work goes on; nothing where no terminal is."""
        if not sys.stderr.isatty():
            yield lambda _: None
            return
        if rich_is_there():
            with _rich_progress(label, total) as advance:
                yield advance
            return
        with click.progressbar(length=total or 0, label=label, file=sys.stderr) as bar:
            yield bar.update

    @cached_property
    def console(self) -> Console | None:
        """None: no terminal, or no rich."""
        if self.as_json or not _draws(sys.stdout) or not rich_is_there():
            return None
        from rich.console import Console

        return Console(highlight=False, markup=False, emoji=False, force_terminal=True if _forced() else None)

    def _draw(self, headers: Sequence[str], rows: list[list[Shown]]) -> None:
        from rich.table import Table

        assert self.console is not None
        table = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 2, 0, 0))
        for number, header in enumerate(headers):
            last = number == len(headers) - 1
            widest = max(len(_plain(row[number])) for row in rows)
            table.add_column(
                header,
                no_wrap=not last,
                overflow="fold" if last else "ellipsis",
                min_width=None if last or widest > NARROW else max(widest, len(header)),
            )
        for row in rows:
            table.add_row(*(_text(cell) for cell in row))
        self.console.print(table)


def rich_is_there() -> bool:
    with suppress(ImportError):
        import rich  # noqa: F401 - only whether it is there

        return True
    return False


def _forced() -> bool:
    return bool(os.environ.get("FORCE_COLOR"))


def _draws(stream: IO[str]) -> bool:
    return stream.isatty() or _forced()


def _text(cell: Shown) -> Text:
    from rich.text import Text

    return Text(_plain(cell), style=cell.style if isinstance(cell, Cell) else "")


def _plain(cell: Shown) -> str:
    return clean(cell.text if isinstance(cell, Cell) else cell)


def _columns(headers: Sequence[str], rows: list[list[Shown]]) -> Iterator[str]:
    texts = [[*headers], *([_plain(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(headers))]
    for row in texts:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


@contextmanager
def _rich_progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(label, total=total)
        yield lambda steps: bars.advance(bar, steps)
