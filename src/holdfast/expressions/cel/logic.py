"""CEL's rule for `&&`, `||`, `all` and `exists`: an error counts only if nothing else decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.errors import ExpressionBudget, ExpressionFailed
from holdfast.expressions.cel.budget import ERROR_COST, LEFT, Frame
from holdfast.expressions.cel.values import not_bool


def decided(parts: Iterable[Callable[[Frame], Any]], frame: Frame, decider: bool) -> bool:
    """`decider` if any part gives it, whatever the others say. A spent budget always ends the evaluation."""
    otherwise = not decider
    failure: ExpressionFailed | None = None
    for part in parts:
        try:
            value = part(frame)
        except ExpressionBudget:
            raise
        except ExpressionFailed as error:
            frame[LEFT] -= ERROR_COST
            failure = failure or error
            continue
        if value is decider:
            return not otherwise
        if value is not otherwise:
            failure = failure or not_bool(value)
    if failure is None:
        return otherwise
    try:
        raise failure
    finally:
        failure = None  # else the error would hold this frame, and this frame the error
