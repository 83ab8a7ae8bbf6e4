"""The benchmarks there are, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from bench.figures import Figure
from bench.setting import Setting

YARDSTICKS = ("commits", "python")
"""Run first in every run: they tell a slow machine from a slow Holdfast."""

_MODULES = {
    "commits": "bench.commits",
    "python": "bench.python_speed",
    "throughput": "bench.throughput",
    "steps": "bench.steps",
    "signals": "bench.signals",
    "promises": "bench.promises",
    "broadcast": "bench.broadcast",
    "events": "bench.events",
    "sleep": "bench.sleep",
    "fanout": "bench.fanout",
    "children": "bench.children",
    "recovery": "bench.recovery",
    "memory": "bench.memory",
    "turn_cost": "bench.turn_cost",
    "query": "bench.query",
    "idle": "bench.idle",
    "storage": "bench.storage",
    "filters": "bench.filters",
    "import": "bench.importing",
    "virtual_time": "bench.virtual_time",
}

NAMES = tuple(_MODULES)


class Benchmark(Protocol):
    """What a benchmark's module has."""

    FULL: Mapping[str, Any]
    QUICK: Mapping[str, Any]
    run: Callable[[Setting], list[Figure]]


def benchmark(name: str) -> Benchmark:
    return cast(Benchmark, import_module(_MODULES[name]))


def about(name: str) -> str:
    """The first line of the benchmark's own text."""
    return (import_module(_MODULES[name]).__doc__ or "").partition("\n")[0]
