"""Reading the machine: time, processor time, memory; and the two yardsticks as plain functions."""

from __future__ import annotations

import os
import resource
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

COMMITTED_BYTES = 200
_LOOPS = 20_000


class Stopwatch:
    """Seconds, processor seconds of the whole process, and of this thread alone (the event loop's)."""

    def __enter__(self) -> Self:
        self._began = (time.perf_counter(), time.process_time(), time.thread_time())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wall, process, thread = self._began
        self.seconds = time.perf_counter() - wall
        self.cpu_s = time.process_time() - process
        self.loop_cpu_s = time.thread_time() - thread


class Reading(NamedTuple):
    """What the machine's processors had done at a moment."""

    at_s: float
    busy: int
    ticks: int

    @classmethod
    def now(cls) -> Self:
        return cls(time.time(), *_processor_ticks())


def busy_processors(readings: Sequence[Reading], began_s: float, ended_s: float) -> float:
    """How many processors were busy between two moments, with whatever; 0.0 where that is not to be had."""
    within = [reading for reading in readings if began_s <= reading.at_s <= ended_s]
    if len(within) < 2 or within[-1].ticks == within[0].ticks:
        return 0.0
    first, last = within[0], within[-1]
    return (last.busy - first.busy) / (last.ticks - first.ticks) * (os.cpu_count() or 1)


def _processor_ticks() -> tuple[int, int]:
    """Busy ones, and all."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0, 0
    ticks = [int(field) for field in fields]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def resident_bytes() -> int:
    """The memory this process holds now; where that is not to be had, the most it ever held."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return pages * resource.getpagesize()


def commit_seconds(path: Path, count: int) -> float:
    """Bare SQLite: one row of 200 bytes per commit, with the pragmas Holdfast uses. Seconds for `count` of them."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, data TEXT NOT NULL) STRICT")
        data = "x" * COMMITTED_BYTES
        began = time.perf_counter()
        for _ in range(count):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO events (data) VALUES (?)", (data,))
            connection.execute("COMMIT")
        return time.perf_counter() - began
    finally:
        connection.close()


class _Counter:
    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0

    def add(self, number: int) -> int:
        self.total += number
        return self.total


def python_speed(seconds: float) -> float:
    """Bare Python: thousands of rounds per second through calls, attributes, dicts, tuples and strings."""
    rounds, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        _rounds()
        rounds += _LOOPS
    return rounds / took / 1000


def _rounds() -> None:
    counter, table = _Counter(), {}
    for number in range(_LOOPS):
        key = f"k{number & 255}"
        table[key] = (counter.add(number), key)
        if len(table[key]) != 2:
            raise AssertionError
