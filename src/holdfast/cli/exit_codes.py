"""How the command line ends: the exit codes, and which error means which.

0    done
1    the answer is no: nothing was to be changed, something is missing, the doctor has found something
2    wrong use: an unknown option, input that can't be read, a request that can never work
3    not possible, or not now: the database or the server can't be used; the message says what to do
4    there is no such thing: execution, promise, event, key
5    there is no result: the workflow or task failed or was ended, the query or update was refused or failed
6    not allowed: no API key, or its role is not enough
7    the present state does not allow it: closed, already running, request id used for something else
8    out of time: what was waited for goes on
70   a fault of Holdfast itself; --debug shows the traceback
130  interrupted
"""

from __future__ import annotations

from typing import Final

import click

from holdfast import errors

DONE: Final = 0
ANSWER_IS_NO: Final = 1
WRONG_USE: Final = 2
NOT_POSSIBLE: Final = 3
NOT_FOUND: Final = 4
NO_RESULT: Final = 5
NOT_ALLOWED: Final = 6
CONFLICT: Final = 7
OUT_OF_TIME: Final = 8
INTERNAL: Final = 70
INTERRUPTED: Final = 130

# The first that fits.
_CODES: Final[tuple[tuple[type[errors.HoldfastError], int], ...]] = (
    (errors.InvalidRequest, WRONG_USE),
    (errors.NotFound, NOT_FOUND),
    (errors.ExecutionOutcome, NO_RESULT),
    (errors.CallFailed, NO_RESULT),
    (errors.TaskFailed, NO_RESULT),
    (errors.AccessRefused, NOT_ALLOWED),
    (errors.Conflict, CONFLICT),
)


class Refused(click.ClickException):
    """An error of Holdfast, shown as one line."""

    def __init__(self, error: errors.HoldfastError) -> None:
        hint = "; give it as HOLDFAST_API_KEY or --api-key" if isinstance(error, errors.Unauthenticated) else ""
        super().__init__(one_line(f"{str(error).rstrip('.')}{hint} [{error.code}]"))
        vars(self)["exit_code"] = code_of(error)


class OutOfTime(click.ClickException):
    """What was waited for did not come within --timeout."""

    exit_code = OUT_OF_TIME

    def __init__(self) -> None:
        super().__init__(
            "not within --timeout; it goes on: wait longer, or look later with `holdfast workflow show ID`"
        )


class Fault(click.ClickException):
    """Something nobody has thought of."""

    exit_code = INTERNAL

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            one_line(f"{type(error).__name__}: {error}; this is a fault of Holdfast, --debug shows where it is")
        )


def code_of(error: errors.HoldfastError) -> int:
    return next((code for cls, code in _CODES if isinstance(error, cls)), NOT_POSSIBLE)


def one_line(text: str) -> str:
    """Without line breaks, and without anything that a terminal would obey."""
    joined = " ".join(text.split())
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in joined)
