"""What views share, and failures as JSON."""

from __future__ import annotations

import msgspec

from holdfast.model.values import Failure


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What all of them share. Fields a newer server adds are ignored by an older client."""


class FailureView(View, frozen=True, kw_only=True, omit_defaults=True):
    """An exception in its durable form."""

    type: str
    message: str = ""
    traceback: str = ""
    code: str = ""
    non_retryable: bool = False
    cause: FailureView | None = None


def failure_view(failure: Failure | None) -> FailureView | None:
    if failure is None:
        return None
    return FailureView(
        type=failure.type,
        message=failure.message,
        traceback=failure.traceback,
        code=failure.code,
        non_retryable=failure.non_retryable,
        cause=failure_view(failure.cause),
    )
