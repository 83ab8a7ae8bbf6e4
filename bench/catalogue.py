"""The benchmarks there are, in the order in which they run, and on which stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from bench.figures import Figure
from bench.setting import Setting

YARDSTICKS = ("commits", "python")
"""Run first in every run: they tell a slow machine from a slow Holdfast."""

_ON_BOTH = {
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
    "remote": "bench.remote",
    "rest": "bench.rest",
    "idle": "bench.idle",
    "storage": "bench.storage",
    "pages": "bench.pages",
}
# These use no store, or one of their own.
_WITHOUT = {
    "filters": "bench.filters",
    "import": "bench.importing",
    "virtual_time": "bench.virtual_time",
}
_ON_POSTGRES = {
    "across": "bench.across",
    "nodes": "bench.nodes",
    "hints": "bench.hints",
    "queues": "bench.queues",
    "claims": "bench.claims",
    "dead_rows": "bench.dead_rows",
    "growth": "bench.growth",
    "partitions": "bench.partitions",
}
_STORES = {"sqlite": _ON_BOTH | _WITHOUT, "postgres": _ON_BOTH | _ON_POSTGRES}
_MODULES = _ON_BOTH | _WITHOUT | _ON_POSTGRES

NAMES = tuple(_MODULES)


class Benchmark(Protocol):
    """What a benchmark's module has."""

    FULL: Mapping[str, Any]
    QUICK: Mapping[str, Any]
    run: Callable[[Setting], list[Figure]]


def names(store: str) -> tuple[str, ...]:
    """What is measured on a store."""
    return tuple(_STORES[store])


def benchmark(name: str) -> Benchmark:
    return cast(Benchmark, import_module(_MODULES[name]))


def about(name: str) -> str:
    """The first line of the benchmark's own text."""
    return (import_module(_MODULES[name]).__doc__ or "").partition("\n")[0]
