"""How much there is: files and lines for each folder, how long functions and modules are, names used too often."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tools.house.measure import Measure
from tools.house.sources import Source, written_python

MOST_FILES_OF_A_NAME = 3


class Folder(NamedTuple):
    name: str
    files: int
    lines: int
    generated: int
    sql: int


class Spread(NamedTuple):
    """How a length is spread: half are at most `median` long, nine in ten `p90`."""

    number: int
    median: int
    p90: int
    p99: int
    longest: int

    @classmethod
    def of(cls, lengths: Iterable[int]) -> Spread:
        found = sorted(lengths) or [0]
        median, p90, p99 = (found[min(len(found) - 1, len(found) * percent // 100)] for percent in (50, 90, 99))
        return cls(len(found), median, p90, p99, found[-1])


def folders(sources: Iterable[Source]) -> list[Folder]:
    by_name: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        by_name[source.folder].append(source)
    rows = [_folder(name, by_name[name]) for name in sorted(by_name)]
    return [*rows, _folder("all", [source for found in by_name.values() for source in found])]


def _folder(name: str, sources: list[Source]) -> Folder:
    written = written_python(sources)
    return Folder(
        name,
        len(written),
        _lines(written),
        _lines(source for source in sources if source.generated),
        _lines(source for source in sources if not source.is_python),
    )


def _lines(sources: Iterable[Source]) -> int:
    return sum(len(source.lines) for source in sources)


def function_lengths(sources: Iterable[Source]) -> dict[str, int]:
    """From `def` to the last line, by place; decorators do not count, docstrings do."""
    return {
        f"{source.name}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for source in written_python(sources)
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def module_lengths(sources: Iterable[Source]) -> dict[str, int]:
    return {source.name: len(source.lines) for source in written_python(sources)}


def functions(sources: Sequence[Source]) -> list[Measure]:
    lengths = function_lengths(sources)
    spread = Spread.of(lengths.values())
    longest = tuple(f"{lengths[place]:4} {place}" for place in sorted(lengths, key=lambda place: -lengths[place])[:20])
    return [
        Measure("function_median", spread.median, "lines that half of all functions do with", longest),
        Measure("function_p90", spread.p90, "lines that nine functions in ten do with", longest),
    ]


def common_names(sources: Iterable[Source]) -> Measure:
    """Names of files that say too little, because more than three files have them."""
    names = [source.name.rpartition("/")[2] for source in written_python(sources)]
    found = {name: count for name, count in Counter(names).items() if name != "__init__.py"}
    common = sorted(name for name, count in found.items() if count > MOST_FILES_OF_A_NAME)
    places = tuple(f"{found[name]} times {name}" for name in common)
    return Measure("common_names", len(common), "file names used more than three times", places)
