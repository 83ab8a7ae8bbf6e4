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


class ErrorMapping(NamedTuple):
    status: int
    grpc: str
    title: str


STATUS: Final[dict[type[er.HoldfastError], ErrorMapping]] = {
    er.HoldfastError: ErrorMapping(500, "INTERNAL", "Not possible"),
    er.InvalidRequest: ErrorMapping(422, "INVALID_ARGUMENT", "The request is not valid"),
    er.PayloadTooLarge: ErrorMapping(413, "RESOURCE_EXHAUSTED", "Too large"),
    er.BodyTooLarge: ErrorMapping(413, "RESOURCE_EXHAUSTED", "Too large"),
    er.HeadersTooLarge: ErrorMapping(431, "RESOURCE_EXHAUSTED", "Too large"),
    er.MediaTypeRefused: ErrorMapping(415, "INVALID_ARGUMENT", "Not a media type this server takes"),
    er.NotFound: ErrorMapping(404, "NOT_FOUND", "Not found"),
    er.MethodNotAllowed: ErrorMapping(405, "UNIMPLEMENTED", "Not a method of this address"),
    er.Conflict: ErrorMapping(409, "ABORTED", "Not in this state"),
    er.SignalLimitReached: ErrorMapping(429, "RESOURCE_EXHAUSTED", "Too many"),
    er.Unavailable: ErrorMapping(503, "UNAVAILABLE", "Not now"),
    er.DeadlinePassed: ErrorMapping(504, "DEADLINE_EXCEEDED", "No answer in time"),
    er.TooManyRequests: ErrorMapping(429, "RESOURCE_EXHAUSTED", "Too many"),
    er.StorageFull: ErrorMapping(507, "RESOURCE_EXHAUSTED", "The server's disk is full"),
    er.StorageError: ErrorMapping(503, "UNAVAILABLE", "The database can't be used"),
    er.EventTooNew: ErrorMapping(503, "UNAVAILABLE", "This server is too old"),
    er.AccessRefused: ErrorMapping(403, "PERMISSION_DENIED", "Not allowed"),
    er.AmbiguousCredentials: ErrorMapping(400, "INVALID_ARGUMENT", "More than one key"),
    er.Unauthenticated: ErrorMapping(401, "UNAUTHENTICATED", "Not authenticated"),
    er.ExecutionOutcome: ErrorMapping(409, "ABORTED", "No result"),
    er.CallFailed: ErrorMapping(422, "FAILED_PRECONDITION", "The workflow has refused"),
    er.WaitFailed: ErrorMapping(409, "ABORTED", "Not in this state"),
    er.ProgramError: ErrorMapping(409, "ABORTED", "Not in this state"),
}
RETRY_AFTER_S: Final = 1


def mapping_of(error: er.HoldfastError) -> ErrorMapping:
    for cls in type(error).__mro__:
        found = STATUS.get(cls)
        if found is not None:
            return found
    raise AssertionError("every error is a HoldfastError")


def http_status(error: er.HoldfastError) -> int:
    return mapping_of(error).status


def grpc_status(error: er.HoldfastError) -> str:
    """The name of a `grpc.StatusCode`."""
    return mapping_of(error).grpc


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
    how = mapping_of(error)
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
