"""Tables and lines: plain for pipes, drawn on terminals, without anything that commands one."""

import pytest

from holdfast.cli import formatting, output
from holdfast.cli.output import Cell, Output, Shown
from holdfast.model.values import MICRO, Wait

ROWS: list[list[Shown]] = [["A-1", Cell("STUCK", "bold red")], ["long-id", Cell("COMPLETED", "green")]]


def test_a_table_for_a_pipe_is_plain(capsys):
    """Columns line up; there are no colours."""
    Output().table(("ID", "STATUS"), ROWS)

    assert ["ID       STATUS", "A-1      STUCK", "long-id  COMPLETED"] == capsys.readouterr().out.splitlines()


def test_a_terminal_gets_colours(monkeypatch, capsys):
    """FORCE_COLOR stands for one here; NO_COLOR takes them away again."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    Output().table(("ID", "STATUS"), ROWS)
    coloured = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    Output().table(("ID", "STATUS"), ROWS)
    plain = capsys.readouterr().out

    assert ("\x1b[1;31mSTUCK" in coloured, "[31m" in plain) == (True, False)


def test_without_rich_a_terminal_gets_plain_text(monkeypatch, capsys):
    """It is an extra."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(output, "rich_is_there", lambda: False)
    Output().table(("ID", "STATUS"), ROWS)
    Output().field("kind", Cell("order", "bold"))
    shown = capsys.readouterr().out.splitlines()

    assert ["A-1      STUCK", "kind        order"] == [shown[1], shown[-1]]


def test_text_is_never_read_as_markup(monkeypatch, capsys):
    """Nor obeyed by a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    Output().line("[red]not red[/red] :smile: \x1b[2J")
    shown = capsys.readouterr().out

    assert "[red]not red[/red] :smile: \\x1b[2J\n" == shown


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0 ms"),
        (1_500, "2 ms"),
        (2 * MICRO, "2 s"),
        (61 * MICRO, "1 min 1 s"),
        (3_600 * MICRO, "1 h"),
        (90_000 * MICRO, "1 d 1 h"),
    ],
)
def test_lengths_of_time_have_two_units(micros, text):
    """The largest ones."""
    assert text == formatting.length(micros)


def test_waits_are_named_timers_last():
    """A timer mostly limits something else."""
    waits = (Wait("timer", "timeout of go", until_at=0), Wait("signal", "go"))

    assert formatting.waits(waits).startswith("signal 'go', timer 'timeout of go' at ")
