"""How many hand-written files a plain operation or a plain table takes: those in whose code its words stand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from tools.house.measure import Measure
from tools.house.sources import Source

_SQL_COMMENT = re.compile(r"--.*")
_WORD = re.compile(r"\w+")


def words_by_file(sources: Iterable[Source], without: Iterable[str]) -> dict[str, set[str]]:
    """Of the hand-written files outside of some folders."""
    outside = set(without)
    counted = [source for source in sources if not source.generated and source.folder not in outside]
    return {source.name: set(words_of(source)) for source in counted}


def touched(kind: str, exemplars: Mapping[str, str], words: Mapping[str, set[str]]) -> list[Measure]:
    return [_measure(kind, name, re.compile(pattern), words) for name, pattern in exemplars.items()]


def _measure(kind: str, exemplar: str, pattern: re.Pattern[str], words: Mapping[str, set[str]]) -> Measure:
    places = tuple(name for name, found in words.items() if any(map(pattern.search, found)))
    return Measure(f"{kind}_{exemplar}", len(places), f"files for the {kind} {exemplar}", places)


def words_of(source: Source) -> Iterator[str]:
    """The names in a file's code and its strings without blanks; prose is no code."""
    if not source.is_python:
        yield from _WORD.findall(_SQL_COMMENT.sub("", source.text))
    prose = {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}
    for node in source.nodes:
        if id(node) not in prose:
            yield from _words(node)


def _words(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name) | ast.ImportFrom(module=str(name)):
            yield name
        case ast.Constant(value=str(text)) if text and not re.search(r"\s", text):
            yield text
