"""What a statement of the PostgreSQL store costs the server, told by the server."""

from __future__ import annotations

import json
from typing import Any

from holdfast.store.postgres.statements import statement


async def pages_touched(connection: Any, file: str, name: str, *values: Any) -> int:
    async with connection.transaction():
        sql = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement(file, name)}"
        (row,) = await connection.fetch(sql, *values)
    plan = json.loads(row[0])[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
