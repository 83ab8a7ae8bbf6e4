"""The checker and promises that were settled before they were made."""

from __future__ import annotations

import pytest

from holdfast.model import events as e
from tests.verification.test_invariants import record
from verification.invariants import check

STARTED = e.WorkflowStarted(kind="k", workflow_id="w")
PROMISE = e.PromiseCreated(up_to=1, promise_no=1, name="p", token_hash="h")
RESOLVED = e.PromiseResolved(promise_no=1, name="p")


def given_up(up_to: int) -> e.PromiseCancelled:
    return e.PromiseCancelled(up_to=up_to, promise_no=1, name="p")


@pytest.mark.parametrize("up_to", [1, 2], ids=["the turn that made it", "a later one"])
def test_nothing_is_told_of_what_was_given_up(up_to: int) -> None:
    """I10: whatever was settled in advance, a turn that has given it up does not want it."""
    found = check([record(STARTED, PROMISE, given_up(up_to), RESOLVED, e.WorkflowCompleted(up_to=4))])
    assert [("I10", 4)] == [(violation.invariant, violation.seq) for violation in found]


def test_a_turn_may_give_up_what_has_just_been_settled() -> None:
    """It has not seen that yet."""
    assert [] == check([record(STARTED, PROMISE, RESOLVED, given_up(2), e.WorkflowCompleted(up_to=4))])
