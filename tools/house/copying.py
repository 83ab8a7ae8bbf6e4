"""Lines that only carry fields from one record to another.

Such a place is a call with at least four keyword arguments of which more than half are carried over: a name, an
attribute of a name, or one of these through a conversion of one argument. It counts with all its lines.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tools.house.measure import Measure
from tools.house.sources import Source, written_python

LEAST_KEYWORDS = 4


def copying(sources: Iterable[Source]) -> Measure:
    found = {(source.name, node.lineno): _lines(node) for source in written_python(sources) for node in copies(source)}
    lines = {(name, line) for (name, _), lines in found.items() for line in lines}
    places = tuple(f"{len(lines):4} {name}:{line}" for (name, line), lines in found.items())
    return Measure("copying_lines", len(lines), f"lines that only carry fields over ({len(found)} places)", places)


def copies(source: Source) -> Iterator[ast.Call]:
    for node in source.nodes:
        if isinstance(node, ast.Call):
            values = [keyword.value for keyword in node.keywords if keyword.arg is not None]
            if len(values) >= LEAST_KEYWORDS and 2 * sum(map(_is_carried, values)) > len(values):
                yield node


def _is_carried(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        value = value.args[0]
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name)


def _lines(node: ast.Call) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
