"""The checker and promises that were settled before they were made."""

from __future__ import annotations

from holdfast.model import events as e
from holdfast.testing.invariants import check
from tests.unit.testing.test_invariants import record

STARTED = e.WorkflowStarted(kind="k", workflow_id="w")
PROMISE = e.PromiseCreated(up_to=1, promise_no=1, name="p", token_hash="h")
RESOLVED = e.PromiseResolved(promise_no=1, name="p")


def given_up(up_to: int) -> e.PromiseCancelled:
    return e.PromiseCancelled(up_to=up_to, promise_no=1, name="p")


def test_what_was_settled_in_advance_is_told_to_a_turn_that_has_given_it_up() -> None:
    """Made and given up by one turn: the outcome was there before both."""
    assert [] == check([record(STARTED, PROMISE, given_up(1), RESOLVED, e.WorkflowCompleted(up_to=4))])


def test_an_outcome_after_a_later_turn_has_given_up_is_a_violation() -> None:
    """I10: from then on nobody could settle it."""
    found = check([record(STARTED, PROMISE, given_up(2), RESOLVED, e.WorkflowCompleted(up_to=4))])
    assert [("I10", 4)] == [(violation.invariant, violation.seq) for violation in found]
