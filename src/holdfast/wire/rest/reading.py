"""Failures, from the public JSON back."""

from __future__ import annotations

from holdfast.model.values import Failure
from holdfast.wire.rest.views import FailureView


def read_failure(view: FailureView | None) -> Failure | None:
    if view is None:
        return None
    return Failure(
        type=view.type,
        message=view.message,
        traceback=view.traceback,
        code=view.code,
        non_retryable=view.non_retryable,
        cause=read_failure(view.cause),
    )
