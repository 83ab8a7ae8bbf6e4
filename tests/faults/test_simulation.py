"""Whole clusters on virtual time, from seeds: whatever goes wrong on the way, the account is right at the end.

HOLDFAST_SIMULATIONS sets how many scenarios are run, HOLDFAST_SEED with which one they begin.
"""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from holdfast.model import events as e
from verification.mutants import planted
from verification.simulation import Report, simulate

FIRST = int(os.environ.get("HOLDFAST_SEED", "1"))
COUNT = int(os.environ.get("HOLDFAST_SIMULATIONS", "1" if "HOLDFAST_SEED" in os.environ else "3000"))
PARTS = 12
COLLECT_EVERY = 50

SAME = """
import sys
from verification.simulation import simulate
print(*(simulate(seed).digest for seed in range(int(sys.argv[1]), int(sys.argv[2]))))
"""


@pytest.fixture(autouse=True)
def rare_collections() -> Iterator[None]:
    """A scenario leaves thousands of cycles behind: looking for them at every turn takes a fifth of the time."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def ranges() -> list[range]:
    cuts = [FIRST + COUNT * part // PARTS for part in range(PARTS + 1)]
    return [range(first, last) for first, last in pairwise(cuts) if last > first]


def failure_text(report: Report) -> str:
    return f"{report}\n\n" + "\n".join(report.trace)


@pytest.mark.parametrize("seeds", ranges(), ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_every_scenario_ends_well(seeds: range, record_property: Callable[[str, object], None]) -> None:
    """Kills, stops, lost commits, lost answers, clock jumps: no invariant is broken. The seed repeats a failure."""
    began = time.process_time(), time.monotonic()
    for seed in seeds:
        report = simulate(seed)
        assert report.ok, failure_text(report)
        if seed % COLLECT_EVERY == 0:
            gc.collect()
    # Told at the end of all tests: both times, since others may be using the machine.
    record_property("simulated", (len(seeds), time.process_time() - began[0], time.monotonic() - began[1]))


def test_scenarios_do_not_just_sit_there() -> None:
    """Most of them have faults, and all of them histories; every kind of fault comes up."""
    reports = [simulate(seed) for seed in range(FIRST, FIRST + 150)]

    assert all(report.executions >= 1 and report.events >= 3 for report in reports)
    assert sum(bool(report.faults) for report in reports) > 50
    kinds = {fault.partition(" ")[0] for report in reports for fault in report.faults}
    assert kinds == {"kill", "freeze", "jump", "leave"}
    # Where no node has a fault, the database and the network still have theirs.
    notes = [note for report in reports if not report.faults for note in report.trace]
    assert any("the answer is lost" in note for note in notes)
    assert any("StorageBusy" in note for note in notes)


WANTED = {
    "CANCEL_REQUESTED",
    "CHILD_CANCEL_REQUESTED",
    "CHILD_FAILED",
    "PROMISE_CANCELLED",
    "PROMISE_REJECTED",
    "PROMISE_RESOLVED",
    "PROMISE_TIMED_OUT",
    "TASK_FAILED",
    "TIMER_CANCELLED",
    "UPDATE_ACCEPTED",
    "UPDATE_COMPLETED",
    "UPDATE_FAILED",
    "UPDATE_REJECTED",
    "WAIT_CANCELLED",
    "WORKFLOW_CANCELLED",
    "WORKFLOW_COMPLETED",
    "WORKFLOW_CONTINUED_AS_NEW",
    "WORKFLOW_FAILED",
    "WORKFLOW_RESET",
    "WORKFLOW_TERMINATED",
    "WORKFLOW_TIMED_OUT",
}


def test_what_can_happen_does() -> None:
    """Programs end in every way, and what they wait for does; the clock goes back; commits are in doubt."""
    reports = [simulate(seed) for seed in range(1, 301)]

    seen = {event.type for report in reports for events in report.histories.values() for event in events}
    assert WANTED - seen == set()
    notes = [note for report in reports for note in report.trace]
    assert any("OutcomeUnknown" in note for note in notes)
    assert any("once more" in note for note in notes)
    assert any("the clock jumps by -" in note for note in notes)


def test_executions_are_done_again() -> None:
    """Reset, forked and retried; open ones, closed ones and some that were reset before; with children that are taken
    over; and such calls are repeated and refused like others."""
    reports = [simulate(seed) for seed in range(1, 301)]

    bodies = [[event.body for event in events] for report in reports for events in report.histories.values()]
    resets = [[body for body in history if isinstance(body, e.WorkflowReset)] for history in bodies]
    assert sum(bool(found) for found in resets) > 60
    assert any(len(found) > 1 for found in resets)
    assert {True, False} == {body.fork for found in resets for body in found}
    ended = [history[-1] for history in bodies]
    assert any(isinstance(end, e.WorkflowTerminated) and end.successor is not None for end in ended)
    notes = [note.partition(" ")[2] for report in reports for note in report.trace]
    asked = {note.partition(":")[2].split()[0] for note in notes if note.startswith("r") and ": " in note}
    assert {"reset", "fork", "retry"} <= asked
    assert {"execution_open", "workflow_already_running", "invalid_reset_point"} <= asked


def test_same_seed_gives_the_same_run() -> None:
    """Every event of every history, its time included, and every note of the trace."""
    for seed in range(FIRST, FIRST + 30):
        first, second = simulate(seed), simulate(seed)
        assert (first.digest, first.trace) == (second.digest, second.trace), seed


def test_same_seed_gives_the_same_run_in_another_process() -> None:
    """Nothing hangs on the order of a set, on the process id or on the wall clock."""
    here = [simulate(seed).digest for seed in range(FIRST, FIRST + 15)]
    for hash_seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", SAME, str(FIRST), str(FIRST + 15)],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.split() == here


def test_a_failure_says_how_to_repeat_it() -> None:
    """With its seed, what was violated, and the command."""
    with planted("signal_overwritten"):
        report = next(found for found in map(simulate, range(1, 100)) if not found.ok)

    text = str(report)
    assert f"seed {report.seed}" in text
    assert "I06" in text
    assert f"python -m verification.simulation {report.seed}" in text
