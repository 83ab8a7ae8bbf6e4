"""How an error is told to a caller: HTTP status, gRPC status, problem+json.

One table for both doors. The nearest class up the tree counts, so that a new error has a status from the start.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from holdfast import errors as er

PROBLEM_TYPE: Final = "application/problem+json"
HIDDEN: Final = frozenset({"traceback"})
"""Details that are never told."""


class Told(NamedTuple):
    status: int
    grpc: str
    title: str


STATUS: Final[dict[type[er.HoldfastError], Told]] = {
    er.HoldfastError: Told(500, "INTERNAL", "Not possible"),
    er.InvalidRequest: Told(422, "INVALID_ARGUMENT", "The request is not valid"),
    er.PayloadTooLarge: Told(413, "RESOURCE_EXHAUSTED", "Too large"),
    er.BodyTooLarge: Told(413, "RESOURCE_EXHAUSTED", "Too large"),
    er.HeadersTooLarge: Told(431, "RESOURCE_EXHAUSTED", "Too large"),
    er.MediaTypeRefused: Told(415, "INVALID_ARGUMENT", "Not a media type this server takes"),
    er.NotFound: Told(404, "NOT_FOUND", "Not found"),
    er.MethodNotAllowed: Told(405, "UNIMPLEMENTED", "Not a method of this address"),
    er.Conflict: Told(409, "ABORTED", "Not in this state"),
    er.SignalLimitReached: Told(429, "RESOURCE_EXHAUSTED", "Too many"),
    er.Unavailable: Told(503, "UNAVAILABLE", "Not now"),
    er.DeadlinePassed: Told(504, "DEADLINE_EXCEEDED", "No answer in time"),
    er.TooManyRequests: Told(429, "RESOURCE_EXHAUSTED", "Too many"),
    er.StorageFull: Told(507, "RESOURCE_EXHAUSTED", "The server's disk is full"),
    er.StorageError: Told(503, "UNAVAILABLE", "The database can't be used"),
    er.EventTooNew: Told(503, "UNAVAILABLE", "This server is too old"),
    er.AccessRefused: Told(403, "PERMISSION_DENIED", "Not allowed"),
    er.AmbiguousCredentials: Told(400, "INVALID_ARGUMENT", "More than one key"),
    er.Unauthenticated: Told(401, "UNAUTHENTICATED", "Not authenticated"),
    er.ExecutionOutcome: Told(409, "ABORTED", "No result"),
    er.CallFailed: Told(422, "FAILED_PRECONDITION", "The workflow has refused"),
    er.WaitFailed: Told(409, "ABORTED", "Not in this state"),
    er.ProgramError: Told(409, "ABORTED", "Not in this state"),
}
RETRY_AFTER_S: Final = 1


def told(error: er.HoldfastError) -> Told:
    for cls in type(error).__mro__:
        found = STATUS.get(cls)
        if found is not None:
            return found
    raise AssertionError("every error is a HoldfastError")


def http_status(error: er.HoldfastError) -> int:
    return told(error).status


def grpc_status(error: er.HoldfastError) -> str:
    """The name of a `grpc.StatusCode`."""
    return told(error).grpc


def details_of(error: er.HoldfastError) -> dict[str, Any]:
    """What an error carries, as far as it may be told and has a form in JSON."""
    return {
        name: msgspec.to_builtins(value, enc_hook=str) for name, value in error.details.items() if name not in HIDDEN
    }


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong (RFC 9457). `code` is stable; `field` names what is wrong in the request, if one thing is. What
    `details` holds depends on the code."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str
    field: str | None = None
    details: dict[str, Any] = {}


def problem(error: er.HoldfastError, request_id: str) -> Problem:
    how = told(error)
    details = details_of(error)
    return Problem(
        type=f"urn:holdfast:error:{error.code}",
        title=how.title,
        status=how.status,
        code=error.code,
        detail=error.message,
        request_id=request_id,
        field=details.pop("field", None) or None,
        details=details,
    )
