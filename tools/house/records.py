"""Near-copies of records: structs, data classes and named tuples that have most of their fields in common.

A record counts with the fields that its own class writes, so one that inherits them is no copy; one with fewer than
three is left out. Two are near-copies when at least six in ten of the names that either has are in both (Jaccard), and
near-copies of the same third record are one group.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from tools.house.measure import Measure
from tools.house.sources import Source, written_python

LEAST_FIELDS = 3
ALIKE = 0.6
RECORD_BASES = frozenset({"Struct", "NamedTuple"})


class Record(NamedTuple):
    place: str
    fields: frozenset[str]


def near_copies(sources: Sequence[Source]) -> Measure:
    groups = grouped([record for record in records(sources) if len(record.fields) >= LEAST_FIELDS])
    places = tuple("  ".join(record.place for record in group) for group in groups)
    return Measure("record_groups", len(groups), f"groups of near-copies ({sum(map(len, groups))} records)", places)


def records(sources: Sequence[Source]) -> Iterator[Record]:
    classes = [
        (source, node) for source in written_python(sources) for node in source.nodes if isinstance(node, ast.ClassDef)
    ]
    bases: dict[str, set[str]] = defaultdict(set)
    for _, node in classes:
        bases[node.name] |= set(_bases(node))
    for source, node in classes:
        if _is_data_class(node) or _is_record(node.name, bases, set()):
            yield Record(f"{source.name}:{node.lineno} {node.name}", frozenset(_fields(node)))


def grouped(found: Sequence[Record]) -> list[list[Record]]:
    """Largest groups first."""
    groups: list[list[Record]] = [[record] for record in found]
    home = {record.place: group for record, group in zip(found, groups, strict=True)}
    for one, other in combinations(found, 2):
        mine, theirs = home[one.place], home[other.place]
        if mine is not theirs and alike(one.fields, other.fields) >= ALIKE:
            mine.extend(theirs)
            home.update({record.place: mine for record in theirs})
            theirs.clear()
    return sorted((group for group in groups if len(group) > 1), key=len, reverse=True)


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


def _is_record(name: str, bases: dict[str, set[str]], seen: set[str]) -> bool:
    """By name, whatever module it comes from: two classes of one name are rarely a record and something else."""
    if name in seen:
        return False
    above = bases.get(name, set())
    return bool(above & RECORD_BASES) or any(_is_record(base, bases, seen | {name}) for base in above)


def _bases(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        yield _last_name(base.value if isinstance(base, ast.Subscript) else base)


def _is_data_class(node: ast.ClassDef) -> bool:
    called = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return any(_last_name(each) == "dataclass" for each in called)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _fields(node: ast.ClassDef) -> Iterable[str]:
    for each in node.body:
        match each:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=type_) if not name.startswith("_"):
                if "ClassVar" not in ast.unparse(type_):
                    yield name
