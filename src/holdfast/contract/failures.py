"""Errors as callers give them: a text, or an exception in its durable form."""

from __future__ import annotations

import msgspec

from holdfast.contract.fields import Name
from holdfast.model.values import Failure

REJECTED = "PromiseRejected"


class Rejection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An error in its durable form; a text alone may stand for it."""

    type: Name = REJECTED
    message: str = ""
    traceback: str = ""
    code: str = ""
    non_retryable: bool = False
    cause: Rejection | None = None


def failure_of(error: str | Rejection, text_type: str = REJECTED) -> Failure:
    """What is recorded of an error; `text_type` is the type of an error that is a text alone."""
    if isinstance(error, str):
        return Failure(type=text_type, message=error)
    return msgspec.convert(error, Failure, from_attributes=True)


def rejection_of(failure: Failure) -> Rejection:
    """The other way, for a caller who has an exception."""
    return msgspec.convert(failure, Rejection, from_attributes=True)
