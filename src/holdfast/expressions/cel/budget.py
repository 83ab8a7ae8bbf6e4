"""What an evaluation may cost, counted in steps.

A frame is the list a closure runs on: the payload, the steps that are left, then the variables of macros. Every node
of the tree is paid for in advance (nothing runs twice but the body of a macro, which is paid for at each round), and
whatever depends on the size of a value is paid for where it is done. So the count is exact, the same on every machine,
and the innermost loop has one subtraction in it. A step is meant to take well under a microsecond.
"""

from __future__ import annotations

from typing import Any

from holdfast.errors import ExpressionBudget

Frame = list[Any]

PAYLOAD = 0
LEFT = 1
FIRST_LOCAL = 2

DEFAULT_BUDGET = 100_000

ERROR_COST = 10
"""For an error that `||`, `&&`, `all` or `exists` swallowed: raising is slower than answering."""

MAX_DEPTH = 100
"""How deep two values are compared. Decoded JSON is shallower."""


def charge(frame: Frame, steps: int) -> None:
    """Pays, or ends the evaluation."""
    frame[LEFT] -= steps
    if frame[LEFT] < 0:
        raise spent()


def charge_scan(frame: Frame, length: int) -> None:
    """Pays for looking at so many characters or bytes."""
    if length > 255:
        charge(frame, length >> 8)


def charge_copy(frame: Frame, length: int) -> None:
    """Pays for making a text of this length. This is also what bounds memory: 32 characters for a step."""
    charge(frame, length >> 5)


def spent() -> ExpressionBudget:
    return ExpressionBudget("the expression needs more steps than its budget: make it simpler, or the payload smaller")
