"""Import knots: modules that reach each other by imports, those inside functions and behind TYPE_CHECKING included.

The packages that a module lies in are loaded before it, but that is Python's doing and no import of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from tools.house.measure import Measure
from tools.house.sources import Source

Graph = dict[str, set[str]]


def knots(sources: Iterable[Source]) -> list[Measure]:
    found = circles(imports([source for source in sources if source.is_python]))
    places = tuple(f"{len(circle)} modules: {' '.join(sorted(circle))}" for circle in found)
    return [
        Measure("knots", len(found), "circles of imports", places),
        Measure("knotted_modules", sum(map(len, found)), "modules in circles of imports", places),
    ]


def imports(sources: Sequence[Source]) -> Graph:
    modules = {source.module for source in sources}
    return {source.module: set(_imported(source, modules)) - {source.module} for source in sources}


def _imported(source: Source, modules: set[str]) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield below if below in modules else node.module


def circles(graph: Graph) -> list[set[str]]:
    """Largest first: the sets of modules in which each reaches every other one."""
    circles: list[set[str]] = []
    left = set(graph)
    backward = _reversed(graph)
    while left:
        start = min(left)
        circle = _reached(start, graph, left) & _reached(start, backward, left)
        left -= circle
        if len(circle) > 1:
            circles.append(circle)
    return sorted(circles, key=lambda circle: (-len(circle), min(circle)))


def _reached(start: str, graph: Graph, among: set[str]) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        new = (graph[waiting.pop()] & among) - reached
        reached |= new
        waiting += new
    return reached


def _reversed(graph: Graph) -> Graph:
    backward: Graph = {module: set() for module in graph}
    for module, imported in graph.items():
        for each in imported:
            backward[each].add(module)
    return backward
