"""Snapshots of everything that others rely on: `python -m tools.snapshots`, or `make generate`.

`tests/snapshots` holds what a client, a worker, a script or a second version on the same database can see of Holdfast:
the REST description, the gRPC messages, the public names, the command line's help, the fields of events, the tables.
A test compares them with the code, so every difference is a change in a diff that somebody reads and wants.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

from tools.snapshots.command_help import command_help
from tools.snapshots.event_fields import event_fields
from tools.snapshots.grpc_messages import grpc_messages
from tools.snapshots.public_names import public_names
from tools.snapshots.rest_description import rest_description
from tools.snapshots.schemas import sqlite_schema

FOLDER = Path(__file__).parents[2] / "tests" / "snapshots"
POSTGRES_SCHEMA = "schema_postgres.txt"

SNAPSHOTS: dict[str, Callable[[], dict[str, str]]] = {
    "REST description": rest_description,
    "gRPC messages": grpc_messages,
    "public names": public_names,
    "command help": command_help,
    "event fields": event_fields,
    "SQLite schema": sqlite_schema,
}
"""What can be made without a server; each gives the files of its part, by their path below `FOLDER`."""


def difference(name: str, text: str) -> str:
    """What a kept snapshot says otherwise, as a diff, and how to renew it; empty if it is up to date."""
    kept = FOLDER / name
    old = kept.read_text("utf-8") if kept.exists() else ""
    if old == text:
        return ""
    lines = unified_diff(old.splitlines(), text.splitlines(), f"tests/snapshots/{name}", "the code", lineterm="", n=2)
    return "\n".join([*lines, "", "If this is meant: `make generate` writes the snapshot anew; read its diff."])
