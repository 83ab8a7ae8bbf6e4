"""What the table says of one operation, and the words it says it in."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.model.keys import Role

ORG: Final = "/api/orgs/{org}"
EXECUTIONS: Final = f"{ORG}/workflow-executions"
ONE: Final = f"{EXECUTIONS}/{{workflow_execution_id}}"
V1: Final = "/api/v1"


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

    @property
    def parameters(self) -> list[str]:
        """The names in the path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


def read(name: str, path: str, contract: str, tag: str, summary: str, answer: Any, **more: Any) -> Operation:  # noqa: PLR0917
    return Operation(
        name=name,
        method="GET",
        path=path,
        contract=contract,
        role=more.pop("role", Role.READER),
        tag=tag,
        summary=summary,
        answer=answer,
        **more,
    )


def do(  # noqa: PLR0917 - a table reads by its columns
    name: str, path: str, contract: str, tag: str, summary: str, body: Any, answer: Any, **more: Any
) -> Operation:
    return Operation(
        name=name,
        method=more.pop("method", "POST"),
        path=path,
        contract=contract,
        role=more.pop("role", Role.WRITER),
        tag=tag,
        summary=summary,
        body=body,
        answer=answer,
        **more,
    )
