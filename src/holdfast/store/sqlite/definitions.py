"""Queries for callers about what is deployed: definitions and worker sessions."""

from __future__ import annotations

import sqlite3

from holdfast.model.executions import DefinitionRow, WorkerRow
from holdfast.store.rows import row_to_definition, row_to_worker
from holdfast.store.sqlite.statements import statement

_DEFINITIONS = statement("definitions", "of_org")
_WORKERS = statement("workers", "of_org")


def definitions(connection: sqlite3.Connection, org: str, limit: int) -> list[DefinitionRow]:
    return [row_to_definition(row) for row in connection.execute(_DEFINITIONS, (org, limit)).fetchall()]


def workers(connection: sqlite3.Connection, org: str, limit: int) -> list[WorkerRow]:
    return [row_to_worker(row) for row in connection.execute(_WORKERS, (org, limit)).fetchall()]
