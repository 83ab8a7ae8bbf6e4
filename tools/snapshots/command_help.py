"""What `--help` says, for every command: one file for each command of the first level."""

from __future__ import annotations

from collections.abc import Iterator

import click

from holdfast.cli.main import main

WIDTH = 100


def command_help() -> dict[str, str]:
    top = _context(main, "holdfast", None)
    texts = {"cli/holdfast.txt": _shown(top)}
    for name in main.list_commands(top):
        texts[f"cli/{name}.txt"] = "\n".join(_shown(context) for context in _walk(main, name, top))
    return texts


def _walk(group: click.Group, name: str, parent: click.Context) -> Iterator[click.Context]:
    command = group.get_command(parent, name)
    assert command is not None, f"{parent.command_path} lists {name} and has none"
    context = _context(command, name, parent)
    yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            yield from _walk(command, below, context)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    """As wide as ever, whatever terminal this runs in."""
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH, "color": False}
    return click.Context(command, info_name=name, parent=parent, **settings)


def _shown(context: click.Context) -> str:
    return f"$ {context.command_path} --help\n{context.command.get_help(context)}\n"
