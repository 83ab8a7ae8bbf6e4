"""Pairs of files, or one file with itself, that share a run of six or more lines: equal, or equal in shape.

The shape of a line is what is left when names, strings and numbers are taken for one another. Blank lines, comments,
docstrings, imports and lone brackets are passed over. A run that stands in more than eight places is a habit of the
language, not a copy.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from keyword import iskeyword
from typing import NamedTuple

from tools.house.measure import Measure
from tools.house.sources import Source, written_python

RUN = 6
MOST_PLACES = 8
_TOKEN = re.compile(
    r"""(?P<text>[rbfRBF]*(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))|(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|\S"""
)


class Line(NamedTuple):
    number: int
    shape: str


def repeats(sources: Iterable[Source]) -> Measure:
    shared = runs({source.name: lines_of(source) for source in written_python(sources)})
    ordered = sorted(shared.items(), key=lambda item: -len(item[1]))
    places = tuple(
        f"{len(lines):4} runs {one}:{lines[0][0]} ~ {other}:{lines[0][1]}" for (one, other), lines in ordered
    )
    return Measure("repeats", len(shared), "pairs of files that share six or more lines", places)


def runs(files: dict[str, list[Line]]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """The places where a run begins in both, by the pair of files."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in files.items():
        for start in range(len(lines) - RUN + 1):
            places[tuple(line.shape for line in lines[start : start + RUN])].append((name, start))
    shared: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for found in places.values():
        for (one, here), (other, there) in combinations(found, 2) if len(found) <= MOST_PLACES else ():
            if one != other or there - here >= RUN:
                shared[one, other].append((files[one][here].number, files[other][there].number))
    return shared


def lines_of(source: Source) -> list[Line]:
    passed = set(_passed_over(source.nodes))
    return [
        Line(number, shape(line))
        for number, line in enumerate(source.lines, 1)
        if number not in passed and not line.lstrip().startswith("#") and any(map(str.isalnum, line))
    ]


def shape(line: str) -> str:
    return " ".join(map(_kind, _TOKEN.finditer(line)))


def _kind(token: re.Match[str]) -> str:
    word = token[0]
    return word if token.lastgroup is None or iskeyword(word) or word == "self" else token.lastgroup


def _passed_over(nodes: Sequence[ast.AST]) -> Iterator[int]:
    for node in nodes:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
