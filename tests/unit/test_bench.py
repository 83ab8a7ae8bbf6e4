"""The benchmarks run and report: what they measure is judged by people, not here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.catalogue import NAMES
from bench.figures import Figure, line, percentile
from bench.table import table

ROOT = Path(__file__).parents[2]

MEASURED = [
    "throughput",
    "steps",
    "signals",
    "promises",
    "broadcast",
    "events",
    "sleep",
    "fanout",
    "children",
    "recovery",
    "memory",
    "turn_cost",
    "query",
    "idle",
    "storage",
    "filters",
    "import",
    "virtual_time",
]
KEYS = {"name", "figure", "unit", "min", "max", "parameters", "yardstick", "ratio", "target", "met", "also", "machine"}


def _bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


def test_list_names_every_benchmark():
    """`--list` names the yardsticks and all benchmarks, a sentence each, and measures nothing."""
    done = _bench("--list")

    assert 0 == done.returncode, done.stderr
    assert ["commits", "python", *MEASURED] == [text.split()[0] for text in done.stdout.splitlines()]
    assert all(text.rstrip().endswith((".", "?")) for text in done.stdout.splitlines())


def test_quick_run_gives_one_json_line_per_benchmark_with_every_key(tmp_path):
    """A run prints the yardsticks and the benchmark as JSON lines, then a table, and writes the same to the file."""
    report = tmp_path / "report.json"

    done = _bench("storage", "--quick", "--dir", str(tmp_path), "--json", str(report))

    assert 0 == done.returncode, done.stderr
    printed, _, shown = done.stdout.partition("\n\n")
    lines = [json.loads(text) for text in printed.splitlines()]
    assert ["commits", "python", "storage"] == [found["name"] for found in lines]
    assert all(found.keys() >= KEYS for found in lines)
    assert all(found["figure"] > 0 and isinstance(found["met"], bool) for found in lines)
    assert lines == json.loads(report.read_text("utf-8"))
    assert "storage: completed one-step workflow" in shown
    assert [report] == list(tmp_path.iterdir()), "databases were left behind"


def test_unknown_benchmark_is_refused_by_name():
    """A misspelt name ends the run before anything is measured, and the names there are get shown."""
    done = _bench("thruput")

    assert 2 == done.returncode
    assert "thruput" in done.stderr
    assert "throughput" in done.stderr


def test_catalogue_holds_yardsticks_first():
    """The yardsticks run before anything that is compared with them."""
    assert ("commits", "python", *MEASURED) == NAMES


@pytest.mark.parametrize(
    ("bounds", "met"),
    [
        ({}, None),
        ({"at_least": 10.0}, True),
        ({"at_least": 11.0}, False),
        ({"at_most": 10.0}, True),
        ({"at_most": 9.0}, False),
    ],
)
def test_target_is_judged_by_the_figure(bounds, met):
    """A figure on its bound meets it; without a target there is nothing to meet."""
    assert met is Figure(name="x", figure=10.0, unit="s", **bounds).met


def test_target_of_ratio_is_judged_within_each_repetition():
    """A slow machine slows figure and yardstick alike: the median of the ratios counts."""
    repetitions = [
        [Figure(name="x", figure=figure, unit="s", yardstick=yardstick, at_most=2.0, of_ratio=True)]
        for figure, yardstick in [(1.0, 1.0), (30.0, 10.0), (50.0, 40.0)]
    ]

    found = line("x", repetitions, {})

    assert (30.0, 1.25, True) == (found["figure"], found["ratio"], found["met"])


def test_line_misses_its_target_when_any_figure_does():
    """`met` at the top speaks for all figures of the benchmark."""
    good = Figure(name="good", figure=1.0, unit="s", at_most=2.0)
    bad = Figure(name="bad", figure=3.0, unit="s", at_most=2.0)

    found = line("x", [[good, bad]], {})

    assert found["met"] is False
    assert found["also"][0]["met"] is False


def test_table_shows_a_failed_benchmark_by_its_error():
    """A benchmark that broke appears in the table with the reason in place of figures."""
    broken = {"name": "idle", "error": "ended with code 1", "met": False, "also": []}

    assert "idle: ended with code 1" in table([broken])


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (99, 99), (100, 100), (1, 1)])
def test_percentile_is_the_value_that_so_many_do_not_exceed(percent, value):
    """Nearest rank: of 1..100, the n-th percentile is n."""
    assert value == percentile(list(range(1, 101)), percent)
