"""Exceptions in their durable form."""

from __future__ import annotations

import traceback

from holdfast.errors import HoldfastError, NonRetryable
from holdfast.model.values import Failure

TRACEBACK_CHARS = 8_000
MESSAGE_CHARS = 8_000
MAX_CAUSES = 5


def failure_of(error: BaseException, causes: int = MAX_CAUSES) -> Failure:
    """What is kept of an exception: type, message, traceback, and the same of what caused it."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__, chain=False))
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001 - a __str__ of the user's that fails must not hide the failure
        message = f"(its text can't be had: {type(broken).__name__})"
    return Failure(
        type=type(error).__name__,
        message=_plain(message)[:MESSAGE_CHARS],
        traceback=_plain(text)[-TRACEBACK_CHARS:],
        code=error.code if isinstance(error, HoldfastError) else "",
        non_retryable=isinstance(error, NonRetryable),
        cause=failure_of(cause, causes - 1) if cause is not None and causes > 0 else None,
    )


def _plain(text: str) -> str:
    """Without lone surrogates, which no database takes."""
    return text.encode("utf-8", "backslashreplace").decode()
