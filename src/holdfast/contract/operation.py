"""The table of operations: a request struct says all there is to know about its operation.

    @operation("terminate_workflow", POST, f"{EXECUTION}/terminate", Role.WRITER, rpc="TerminateWorkflow")
    class TerminateExecution(Request[Changed], frozen=True, kw_only=True): ...

REST routes, the OpenAPI document, role checks and the audit log, gRPC methods, the remote client's calls and the checks
of fields are made from it. The engine registers the meaning with `decides` or `answers` (`engine/api.py`).

`org` says whose data it is, `by` and `address` who asks and from where: the server fills these in. Every other field is
in the path if the path names it, else in the query of a GET, else in the JSON body.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, get_args, get_origin

import msgspec

from holdfast.contract.principals import Principal
from holdfast.model.keys import Role

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
R = TypeVar("R", bound="type[Request[Any]]")

GET: Final = "GET"
POST: Final = "POST"
DELETE: Final = "DELETE"
ORG: Final = "/api/orgs/{org}"
EXECUTIONS: Final = f"{ORG}/workflow-executions"
EXECUTION: Final = f"{EXECUTIONS}/{{workflow_execution_id}}"
TASKS: Final = f"{ORG}/tasks"
TASK: Final = f"{TASKS}/{{task_execution_id}}"
V1: Final = "/api/v1"
JSON: Final = "application/json"
SERVER_FIELDS: Final = frozenset({"org", "by", "address"})

_PUBLIC: Final = {"priority": "priority_seconds", "ttl_s": "idempotency_key_ttl_seconds"}


def public_name(field: str) -> str:
    """The name of a field outside of Python: units are written out."""
    spelled = f"{field[:-2]}_seconds" if field.endswith("_s") else field
    return _PUBLIC.get(field, spelled)


def public_names(**others: str) -> Callable[[str], str]:
    """As `public_name`, with exceptions: for `rename=` of a struct."""
    return lambda field: others.get(field) or public_name(field)


class Request(msgspec.Struct, Generic[A], frozen=True, kw_only=True, rename=public_name):
    """What is asked of an org. `A` is the type of the answer."""

    org: str

    def is_answered_by(self, answer: A) -> bool:
        """Of a request that waits: whether this is the answer, and not just how far things have got."""
        return True


class AuditedRequest(Request[A], Generic[A], frozen=True, kw_only=True):
    """A request that its own transaction writes into the org's audit log. `by` None is the operator, who has the
    database itself."""

    by: Principal | None = None
    address: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True, rename=public_name):
    """What an operation answers with. Readers ignore fields that they do not know, so a newer server may add some."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """One row. `role` None: nobody is asked who they are. `payload`: the body may be as large as a payload. `waits`: it
    may be answered late. `streams`: it answers record by record. `repeatable`: a client may send it again without a
    request id. `aliases` are further paths. `audited`: the server writes the call into the audit log; requests that do
    so in their own transaction are AuditedRequests."""

    name: str
    method: str
    path: str
    role: Role | None
    request: type[Request[Any]]
    answer: Any
    rpc: str
    tag: str
    summary: str
    status: int = 200
    payload: bool = False
    waits: bool = False
    streams: bool = False
    repeatable: bool = True
    example: dict[str, Any] | None = None
    media: str = JSON
    aliases: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    """The kinds of a stream's server-sent events, the last of which ends it. Without, all kinds, and `end` ends it."""
    no_rpc: str = ""
    """Why there is no gRPC method, if there is none."""

    @property
    def audited(self) -> bool:
        """What only an admin may do is in the org's audit log."""
        return self.role is Role.ADMIN and self.method != GET and not issubclass(self.request, AuditedRequest)


OPERATIONS: Final[dict[type[Request[Any]], Operation]] = {}
"""The table, filled by importing `holdfast.contract.table`."""


def operation(name: str, method: str, path: str, role: Role | None, *, tag: str, **more: Any) -> Callable[[R], R]:
    """Make a row of the table out of a request struct. Its summary is the first paragraph of the docstring."""

    def add(request: R) -> R:
        more.setdefault("rpc", "".join(part.capitalize() for part in name.split("_")))
        OPERATIONS[request] = Operation(
            name=name,
            method=method,
            path=path,
            role=role,
            request=request,
            answer=answer_of(request),
            tag=tag,
            summary=_summary(request),
            **more,
        )
        return request

    return add


def answer_of(request: type[Request[Any]]) -> Any:
    """`X` of `Request[X]`."""
    for cls in request.__mro__:
        for base in getattr(cls, "__orig_bases__", ()):
            origin = get_origin(base)
            if isinstance(origin, type) and issubclass(origin, Request):
                found = get_args(base)[0]
                if not isinstance(found, TypeVar):
                    return None if found is type(None) else found
    raise TypeError(f"{request.__name__} does not say its answer: derive it from Request[Answer]")


def _summary(request: type[Any]) -> str:
    first = (request.__doc__ or "").strip().partition("\n\n")[0]
    return " ".join(first.split()).removesuffix(".")


class Api(Protocol):
    """Everything that can be asked of an engine, wherever it runs."""

    def call(self, request: Request[A], using: Any = None) -> Awaitable[A]:
        """Ask. `using` is an open connection of the application's to the engine's own database: the operation becomes
        part of its transaction. Only an engine in the same process can take one."""
        ...

    def stream(self, request: Request[A]) -> AsyncIterator[list[A]]:
        """Ask for what comes record by record: those that are there, then the next ones as they come."""
        ...
