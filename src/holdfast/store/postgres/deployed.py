"""Queries for callers about what is deployed: definitions and worker sessions."""

from __future__ import annotations

from holdfast.model.executions import DefinitionRow, WorkerRow
from holdfast.store.postgres.planning import by_keys
from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.rows import row_to_definition, row_to_worker

_DEFINITIONS = statement("definitions", "of_org")
_WORKERS = statement("workers", "of_org")


@by_keys
async def definitions(connection: Connection, org: str, limit: int) -> list[DefinitionRow]:
    return [row_to_definition(row) for row in await connection.fetch(_DEFINITIONS, org, limit)]


@by_keys
async def workers(connection: Connection, org: str, limit: int) -> list[WorkerRow]:
    return [row_to_worker(row) for row in await connection.fetch(_WORKERS, org, limit)]
