"""Filters that differ only in the texts they ask for are compiled once.

Thousands of waits ask `input.order == "o-1"`, each for an order of its own. What stands between the strings of such a
filter is its form; the strings are put into the frame of an evaluation instead of the code. A form is shared only where
every string is one side of `==` or `!=` and nothing but `&&`, `||` and `!` is above it: what it says then changes no
type, no cost and no message.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from holdfast.errors import InvalidExpression
from holdfast.expressions.cel.analysis import Demand, Equality, demands, each_once
from holdfast.expressions.cel.compiler import Code, Compiler
from holdfast.expressions.cel.grammar import CEL
from holdfast.expressions.lexer import Source
from holdfast.expressions.syntax import Binary, Chain, Literal, Node, Parser, Unary

# Where one of these is, a quote is not simply the beginning or the end of a string.
_UNCLEAR = ("\\", "\n", "\r", '"""')


class Form(NamedTuple):
    """A filter without its strings. A demand with a number gets its value from the string of that number."""

    code: Code
    slots: int
    demands: tuple[tuple[Equality, int | None], ...]

    def equalities(self, strings: tuple[str, ...]) -> tuple[Equality, ...]:
        return each_once(
            equality if number is None else Equality(equality.path, strings[number])
            for equality, number in self.demands
        )


def split(text: str) -> tuple[Form, tuple[str, ...]] | None:
    """A filter's form and strings; None when it has to be compiled as it is."""
    if any(unclear in text for unclear in _UNCLEAR):
        return None
    parts = text.split('"')
    between, strings = tuple(parts[::2]), tuple(parts[1::2])
    if not strings or len(parts) % 2 == 0:
        return None
    form = _form(between)
    return None if form is None else (form, strings)


@lru_cache(maxsize=512)
def _form(between: tuple[str, ...]) -> Form | None:
    for part in between:
        if "'" in part or "//" in part:
            return None  # a string or a comment that might hold a quote
    if any(part[-1:].isalnum() for part in between[:-1]):
        return None  # a letter before a string is part of it
    source = Source('""'.join(between))
    try:
        tree = Parser(source, CEL).whole()
        texts = sorted(_texts(tree), key=lambda literal: literal.start)
        if len(texts) != len(between) - 1:
            return None
        compiler = Compiler(source, texts)
        code = compiler.filter_code(tree)
    except InvalidExpression:
        return None  # the filter itself says better what is wrong with it
    numbers = {literal.start: number for number, literal in enumerate(texts)}
    return Form(code, compiler.slots, tuple(_numbered(demand, numbers) for demand in demands(tree)))


def _texts(node: Node) -> Iterator[Literal]:
    """The strings whose values change nothing but the answer."""
    match node:
        case Chain(parts=parts):
            for part in parts:
                yield from _texts(part)
        case Unary(op="!", operand=operand):
            yield from _texts(operand)
        case Binary(op="==" | "!=", left=left, right=Literal(value=str()) as literal) if not isinstance(left, Literal):
            yield literal
        case Binary(op="==" | "!=", left=Literal(value=str()) as literal, right=right) if not isinstance(
            right, Literal
        ):
            yield literal


def _numbered(demand: Demand, numbers: dict[int, int]) -> tuple[Equality, int | None]:
    literal = demand.literal
    return demand.equality, None if literal is None else numbers.get(literal.start)
