"""The rules of retry policies, for any policy and any attempt."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidRequest
from holdfast.model.values import DEFAULT_STEP_RETRY, DEFAULT_TASK_RETRY, TEN_YEARS_S, Failure, RetryPolicy

intervals = st.floats(0, 1e18)
policies = st.builds(
    RetryPolicy,
    initial_interval_s=intervals,
    backoff=st.floats(0, 1e5),
    max_interval_s=intervals,
    jitter=st.booleans(),
)
attempts = st.integers(1, 10**6)
BOOM = Failure(type="ValueError", message="boom")


@given(policies, attempts, st.text(max_size=20))
def test_a_delay_lies_between_zero_and_the_maximum(policy, attempt, seed):
    """No policy and no attempt number makes a delay negative, infinite, or longer than the maximum."""
    delay = policy.delay_s(attempt, seed)

    assert math.isfinite(delay)
    assert 0 <= delay <= policy.max_interval_s


@given(st.floats(0, 1e308), st.floats(0, 1e308), st.floats(0, 1e308), attempts)
def test_no_finite_policy_overflows(initial, backoff, maximum, attempt):
    """Numbers at the edge of a float's range give the maximum, not an OverflowError or NaN."""
    policy = RetryPolicy(initial_interval_s=initial, backoff=backoff, max_interval_s=maximum, jitter=False)

    assert 0 <= policy.delay_s(attempt, "") <= maximum


@given(policies, attempts, st.text(max_size=20))
def test_jitter_draws_from_the_upper_half(policy, attempt, seed):
    """With jitter a delay is at least half and at most all of what it would be without."""
    fields = {name: getattr(policy, name) for name in ("initial_interval_s", "backoff", "max_interval_s")}
    full = RetryPolicy(**fields, jitter=False).delay_s(attempt, seed)

    assert full / 2 <= RetryPolicy(**fields, jitter=True).delay_s(attempt, seed) <= full


@given(policies, attempts, st.text(max_size=20))
def test_the_same_seed_gives_the_same_delay(policy, attempt, seed):
    """A delay is a function of policy, attempt and seed."""
    assert policy.delay_s(attempt, seed) == policy.delay_s(attempt, seed)


def test_other_seeds_spread_out():
    """Tasks that failed together do not come back together."""
    assert len({DEFAULT_TASK_RETRY.delay_s(3, f"execution-{n}") for n in range(1000)}) > 990


def test_delays_double_up_to_the_maximum():
    """The default policy without jitter waits 1, 2, 4 … seconds and never more than a minute."""
    policy = RetryPolicy(jitter=False)

    assert [policy.delay_s(n, "") for n in (1, 2, 3, 6, 7, 10**6)] == [1.0, 2.0, 4.0, 32.0, 60.0, 60.0]


def test_a_slow_backoff_reaches_the_maximum_too():
    """Growth goes on until the maximum, however small the factor."""
    policy = RetryPolicy(backoff=1.05, max_interval_s=3600.0, jitter=False)

    assert policy.delay_s(1000, "") == 3600.0


@given(st.integers(1, 10**6), attempts)
def test_attempts_are_allowed_up_to_the_limit(limit, attempt):
    """Another attempt may follow exactly while fewer than `max_attempts` have been made."""
    assert RetryPolicy(max_attempts=limit).allows(BOOM, attempt) is (attempt < limit)


@given(attempts)
def test_without_a_limit_there_is_always_another_attempt(attempt):
    """`max_attempts=None` never gives up."""
    assert RetryPolicy().allows(BOOM, attempt)


def test_a_non_retryable_failure_is_final():
    """A failure that says so itself is not tried again."""
    assert not RetryPolicy().allows(Failure(type="X", non_retryable=True), 1)


def test_a_type_named_by_the_policy_is_final():
    """A failure of a type in `non_retryable` is not tried again; others are."""
    policy = RetryPolicy(non_retryable=("ValueError",))

    assert not policy.allows(BOOM, 1)
    assert policy.allows(Failure(type="KeyError"), 1)


def test_steps_are_tried_three_times():
    """By default a step has three attempts."""
    assert [DEFAULT_STEP_RETRY.allows(BOOM, attempt) for attempt in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", -1),
        ("initial_interval_s", -0.1),
        ("initial_interval_s", math.nan),
        ("backoff", math.inf),
        ("backoff", -1.0),
        ("max_interval_s", -1.0),
    ],
)
def test_an_impossible_policy_is_refused(field, value):
    """Numbers no delay can be made from are refused, naming the field."""
    with pytest.raises(InvalidRequest, match=field) as caught:
        RetryPolicy(**{field: value})

    assert caught.value.field == field


def test_a_delay_is_never_longer_than_a_database_can_keep():
    policy = RetryPolicy(initial_interval_s=1e300, max_interval_s=1e300, jitter=False)

    assert policy.delay_s(1, "x") == policy.delay_s(9, "x") == TEN_YEARS_S
