"""Servers as commands start them, and what is said once they run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from holdfast.config import ServerConfig

if TYPE_CHECKING:
    from holdfast.assembly import Server
    from holdfast.cli.apps import App

_OPTIONS = (
    click.option(
        "--host", default="127.0.0.1", show_default=True, help="Where to listen; others than this machine need keys."
    ),
    click.option("--port", type=click.IntRange(0, 65535), help="For HTTP; 0 for any free one  [default: 8233]."),
    click.option("--grpc-port", type=click.IntRange(0, 65535), help="For workers and gRPC  [default: 7234]."),
    click.option("--no-grpc", is_flag=True, help="HTTP only; then remote workers can't come."),
)


def listening(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of commands that listen."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def server_config(*, no_grpc: bool, **given: Any) -> ServerConfig:
    """The defaults, but for what was said."""
    config = ServerConfig(**{name: value for name, value in given.items() if value is not None})
    return dataclasses.replace(config, grpc_port=None) if no_grpc else config


def print_addresses(server: Server) -> list[str]:
    """Where a server can be reached."""
    lines = [f"http        {server.url}"]
    if server.grpc is not None:
        lines.append(f"grpc        {server.grpc.url}")
    if server.config.documentation:
        lines.append(f"try it      {server.url}/api/docs")
    return lines


def print_app(app: App) -> list[str]:
    """An application in a few lines."""
    registry = app.registry
    workflows = ", ".join(sorted(f"{found.kind} (version {found.version})" for found in registry.workflows)) or "none"
    tasks = ", ".join(sorted(found.kind for found in registry.tasks)) or "none"
    return [f"workflows   {workflows}", f"tasks       {tasks}"]
