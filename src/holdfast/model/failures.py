"""Exceptions in their durable form."""

from __future__ import annotations

import traceback
from types import CodeType, TracebackType

from holdfast.errors import HoldfastError, NonRetryable
from holdfast.model.values import Failure

TRACEBACK_CHARS = 8_000
MESSAGE_CHARS = 8_000
MAX_CAUSES = 5
MAX_STACKS = 500

_STACKS: dict[tuple[int, ...], tuple[list[CodeType], str]] = {}
"""The text of call stacks, by the ids of their codes and the places in them. What is tried again fails at the same
place again, and to find the text of a stack (files, lines, the marks below them) takes longer than all the rest of a
failed attempt. The codes are kept, so that their ids stay theirs."""


def failure_of(error: BaseException, causes: int = MAX_CAUSES) -> Failure:
    """What is kept of an exception: type, message, traceback, and the same of what caused it."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    text = _traceback_of(error)
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


def _traceback_of(error: BaseException) -> str:
    """As the interpreter would print it, without causes."""
    trace = error.__traceback__
    if trace is None or isinstance(error, BaseExceptionGroup):
        return "".join(traceback.format_exception(type(error), error, trace, chain=False))
    only = "".join(traceback.format_exception_only(type(error), error))
    return f"Traceback (most recent call last):\n{_stack_of(trace)}{only}"


def _stack_of(trace: TracebackType) -> str:
    codes: list[CodeType] = []
    places: list[int] = []
    at: TracebackType | None = trace
    while at is not None:
        code = at.tb_frame.f_code
        codes.append(code)
        places += (id(code), at.tb_lasti)
        at = at.tb_next
    key = tuple(places)
    found = _STACKS.get(key)
    if found is None:
        if len(_STACKS) >= MAX_STACKS:
            _STACKS.clear()
        found = _STACKS[key] = (codes, "".join(traceback.format_tb(trace)))
    return found[1]


def _plain(text: str) -> str:
    """Without lone surrogates, which no database takes."""
    return text.encode("utf-8", "backslashreplace").decode()
