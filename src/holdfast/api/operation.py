"""What the table says of one operation, and the words it says it in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from holdfast.contract.operation import JSON
from holdfast.contract.operation import Operation as Row
from holdfast.model.keys import Role
from holdfast.wire.rest.request_shapes import shape_of


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """`contract` is the noun and method behind it. `role` None means that nobody is asked who they are. `payload`: its
    body may be as large as a payload. `waits`: it may be answered late. `streams`: it answers event by event."""

    name: str
    method: str
    path: str
    contract: str
    role: Role | None
    tag: str
    summary: str
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    answer: type[msgspec.Struct] | None = None
    status: int = 200
    payload: bool = False
    waits: bool = False
    streams: bool = False
    example: dict[str, Any] | None = None
    media: str = "application/json"
    row: Row | None = None
    """The row of the contract's table that it was made from."""

    @property
    def parameters(self) -> list[str]:
        """The names in the path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


def routes_of(row: Row) -> Iterator[Operation]:
    """A row of the contract's table as it is called over HTTP."""
    for number, path in enumerate((row.path, *row.aliases)):
        shape = shape_of(row)
        yield Operation(
            name=row.name + ("_v1" if number else ""),
            method=row.method,
            path=path,
            contract=row.request.__name__,
            role=row.role,
            tag=row.tag,
            summary=row.summary,
            body=shape.body,
            query=shape.query,
            answer=row.answer if row.media == JSON else None,
            status=row.status,
            payload=row.payload,
            waits=row.waits,
            streams=row.streams,
            example=row.example,
            media=row.media,
            row=row,
        )
