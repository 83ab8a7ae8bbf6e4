"""Queries for callers about what is deployed: definitions and worker sessions."""

from __future__ import annotations

from holdfast.model.executions import DefinitionRow, WorkerRow
from holdfast.store.postgres.read_session import index_only
from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.rows import row_to_definition, row_to_worker

_DEFINITIONS = statement("definitions", "of_org")
_WORKERS = statement("workers", "of_org")


@index_only
async def definitions(connection: Connection, org: str, limit: int) -> list[DefinitionRow]:
    return [row_to_definition(row) for row in await connection.fetch(_DEFINITIONS, org, limit)]


@index_only
async def workers(connection: Connection, org: str, limit: int) -> list[WorkerRow]:
    return [row_to_worker(row) for row in await connection.fetch(_WORKERS, org, limit)]
