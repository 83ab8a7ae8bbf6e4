"""Pauses between tries."""

from holdfast.backoff import Backoff


def test_pauses_double_up_to_the_longest():
    backoff = Backoff(0.5, 3.0)

    assert [0.5, 1.0, 2.0, 3.0, 3.0] == [backoff.step() for _ in range(5)]


def test_a_reset_begins_again():
    backoff = Backoff(0.5, 3.0)
    backoff.step()
    assert not backoff.is_fresh
    backoff.reset()

    assert (True, 0.5) == (backoff.is_fresh, backoff.step())


def test_jitter_stays_in_its_range():
    backoff = Backoff(1.0, 1.0)

    assert all(0.5 <= backoff.jittered() <= 1.0 for _ in range(100))
    assert all(1.0 <= backoff.jittered(1.0, 1.5) <= 1.5 for _ in range(100))
