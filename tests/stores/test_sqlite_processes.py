import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("sqlite_child.py")

pytestmark = pytest.mark.slow


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(CHILD), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(*children: subprocess.Popen[str]) -> list[str]:
    """What they printed. A child that failed shows why."""
    ended = [(child, *child.communicate(timeout=100)) for child in children]
    assert [] == [errors for child, _, errors in ended if child.returncode]
    return [output for _, output, _ in ended]


def history(path: Path) -> tuple[int, list[int]]:
    """What the head says, and the numbers that are there."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        execution_row = connection.execute("SELECT last_seq FROM holdfast_executions").fetchone()
        numbers = [row[0] for row in connection.execute("SELECT seq FROM holdfast_events ORDER BY seq")]
        return (execution_row[0] if execution_row is not None else 0), numbers


def test_processes_that_open_a_new_file_at_once_all_succeed(path):
    """Whoever comes first makes the schema; the others find it made."""
    finish(*(start("count", path, 1) for _ in range(6)))

    assert history(path) == (6, [1, 2, 3, 4, 5, 6])


def test_eight_processes_lose_no_update(path):
    """Each transaction sees the one before, whoever wrote it, and no busy database reaches a caller."""
    finish(*(start("count", path, 150) for _ in range(8)))

    assert history(path) == (1_200, list(range(1, 1_201)))


def test_kill_loses_nothing_that_was_acknowledged(path):
    """Killed at twenty random moments: what was acknowledged is there, without a gap."""
    seed = time.time_ns()
    moments = random.Random(seed)
    acknowledged = 0
    for _ in range(20):
        child = start("append", path)
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(moments.uniform(0, 0.15))  # the moment of the kill is what is tested: there is nothing to wait for
        child.kill()
        rest, errors = child.communicate()
        assert first, errors
        acknowledged = max(acknowledged, *map(int, (first + rest).splitlines(keepends=False)))
        last_seq, numbers = history(path)
        assert last_seq >= acknowledged, f"seed {seed}"
        assert numbers == list(range(1, last_seq + 1)), f"seed {seed}"
    assert acknowledged > 20
