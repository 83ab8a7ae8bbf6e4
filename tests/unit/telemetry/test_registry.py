from __future__ import annotations

import re

import pytest

from holdfast.errors import InvalidRequest
from holdfast.telemetry.registry import Registry

SAMPLE = re.compile(r'^[a-z_]+(\{([a-z_]+="([^"\\]|\\\\|\\"|\\n)*",?)+\})? (-?[0-9.e+-]+|\+Inf|NaN)$')


def test_a_counter_is_shown_with_its_words_and_type():
    """Help and type stand before the series, once."""
    registry = Registry()
    jobs = registry.counter("jobs_total", "Jobs done.", "outcome")
    jobs.of("good").value += 2
    jobs.of("bad").value += 1

    assert registry.render() == (
        "# HELP jobs_total Jobs done.\n"
        "# TYPE jobs_total counter\n"
        'jobs_total{outcome="good"} 2\n'
        'jobs_total{outcome="bad"} 1\n'
    )


def test_a_series_without_labels_is_there_from_the_beginning():
    """What has not happened yet is 0, not absent."""
    registry = Registry()
    registry.counter("losses_total", "Losses.")

    assert "losses_total 0\n" in registry.render()


def test_buckets_are_cumulative_and_end_with_infinity():
    """A bound belongs to its bucket, sums and counts are right."""
    registry = Registry()
    times = registry.histogram("seconds", "Time.", (0.1, 1.0)).of()
    for value in (0.05, 0.1, 0.5, 7):
        times.observe(value)

    assert registry.render().splitlines()[2:] == [
        'seconds_bucket{le="0.1"} 2',
        'seconds_bucket{le="1"} 3',
        'seconds_bucket{le="+Inf"} 4',
        "seconds_sum 7.65",
        "seconds_count 4",
    ]


def test_label_values_are_escaped():
    """Whatever a queue is called, it stays on its line and inside its quotes."""
    registry = Registry()
    registry.gauge("depth", "Depth.", "queue").of('a"b\\c\nd').value = 1.5

    last = registry.render().splitlines()[-1]
    assert last == 'depth{queue="a\\"b\\\\c\\nd"} 1.5'
    assert SAMPLE.match(last)


def test_label_sets_are_bounded():
    """The third queue and all after it are counted together."""
    registry = Registry(most_series=2)
    jobs = registry.counter("jobs_total", "Jobs.", "queue")
    for queue in ("a", "b", "c", "d", "a"):
        jobs.of(queue).value += 1

    assert {values[0]: jobs.of(*values).value for values in jobs.values()} == {"a": 2, "b": 1, "other": 2}


def test_one_org_sees_nothing_of_another():
    """With an org named, series of other orgs are left out, and so is what is counted together."""
    registry = Registry(most_series=2)
    depth = registry.gauge("depth", "Depth.", "org", "queue")
    for org in ("mine", "yours", "theirs"):
        depth.of(org, "default").value = 1
    registry.counter("jobs_total", "Jobs.")

    shown = registry.render("mine")
    assert 'depth{org="mine",queue="default"} 1' in shown
    assert "yours" not in shown
    assert "other" not in shown
    assert "jobs_total 0" in shown


def test_a_name_is_given_once():
    """Two metrics of one name would be one broken page."""
    registry = Registry()
    registry.counter("jobs_total", "Jobs.")

    with pytest.raises(InvalidRequest):
        registry.gauge("jobs_total", "Jobs.")


def test_wrong_number_of_label_values_is_refused():
    """A series has a value for each label of its family."""
    with pytest.raises(InvalidRequest):
        Registry().counter("jobs_total", "Jobs.", "queue").of("a", "b")
