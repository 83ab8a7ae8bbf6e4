"""Tokens into a tree: a Pratt parser whose operators come from a table, every node with its place in the text.

The tree is plain data and says nothing about meaning. Its height is bounded while it is built, so that whatever walks
it may recurse. Runs of `&&` and of `||` are one node with many parts: sixty alternatives in a row are not nesting.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import InvalidExpression
from holdfast.expressions.lexer import Lexicon, Source, Token, string_value

MAX_NESTING = 50


# --- the tree -----------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Node:
    """A piece of the tree: where it stands in the text, and how high it is."""

    start: int
    end: int
    height: int


@dataclass(slots=True, eq=False)
class Literal(Node):
    value: Any
    unsigned: bool = False


@dataclass(slots=True, eq=False)
class Name(Node):
    name: str


@dataclass(slots=True, eq=False)
class Member(Node):
    target: Node
    name: str


@dataclass(slots=True, eq=False)
class Index(Node):
    target: Node
    key: Node


@dataclass(slots=True, eq=False)
class Call(Node):
    """`name(args)`, or `target.name(args)`. `at` is where the name stands."""

    name: str
    target: Node | None
    args: list[Node]
    at: int


@dataclass(slots=True, eq=False)
class ListOf(Node):
    items: list[Node]


@dataclass(slots=True, eq=False)
class MapOf(Node):
    entries: list[tuple[Node, Node]]


@dataclass(slots=True, eq=False)
class Unary(Node):
    op: str
    operand: Node


@dataclass(slots=True, eq=False)
class Binary(Node):
    op: str
    left: Node
    right: Node
    at: int


@dataclass(slots=True, eq=False)
class Chain(Node):
    """`a && b && c` or `a || b || c`."""

    op: str
    parts: list[Node]


@dataclass(slots=True, eq=False)
class Conditional(Node):
    test: Node
    then: Node
    otherwise: Node


# --- the parser ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a language's operators are and how tightly they bind."""

    lexicon: Lexicon
    binary: Mapping[str, int]
    chains: frozenset[str]
    unary: Mapping[str, int]
    conditional: int
    constants: Mapping[str, Any]
    keywords: frozenset[str]
    reserved: frozenset[str]
    postfix: int = 100
    openers: frozenset[str] = field(default_factory=lambda: frozenset({".", "[", "("}))


class Parser:
    """One pass over one text."""

    def __init__(self, source: Source, grammar: Grammar) -> None:
        self.source = source
        self.grammar = grammar
        self._tokens = grammar.lexicon.tokens(source)
        self._at = 0
        self._now = self._tokens[0]
        self._depth = 0

    def whole(self) -> Node:
        """The text as one expression, with nothing after it."""
        if self._now.kind == "end":
            raise self.source.refusal("the expression is empty", 0)
        node = self.expression(0)
        if self._now.kind != "end":
            raise self.unexpected("an operator or the end")
        return node

    def expression(self, power: int) -> Node:
        """What begins here, up to an operator that binds no tighter than `power`."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._too_deep(self._now.start)
        left = self._prefix()
        while True:
            token = self._now
            binds = self._binding(token)
            if binds <= power:
                break
            left = self._infix(left, token, binds)
        self._depth -= 1
        return left

    # --- pieces

    def _binding(self, token: Token) -> int:
        """How tightly an operator holds what stands left of it; 0 when it is none."""
        text, grammar = token.text, self.grammar
        if token.kind not in {"op", "name"}:
            return 0
        if text in grammar.binary:
            return grammar.binary[text]
        if token.kind == "op" and text in grammar.openers:
            return grammar.postfix
        return grammar.conditional if text == "?" else 0

    def _infix(self, left: Node, token: Token, binds: int) -> Node:
        self._advance()
        match token.text:
            case ".":
                return self._member(left)
            case "[":
                key = self.expression(0)
                end = self.expect("]")
                return Index(left.start, end, self._height(token.start, left, key), left, key)
            case "(":
                raise self.source.refusal("only a name can be called", token.start)
            case "?":
                return self._conditional(left, token, binds)
        if token.text in self.grammar.chains:
            return self._chain(left, token, binds)
        right = self.expression(binds)
        height = self._height(token.start, left, right)
        return Binary(left.start, right.end, height, token.text, left, right, token.start)

    def _member(self, target: Node) -> Node:
        name = self._now
        if name.kind != "name" or name.text in self.grammar.keywords:
            raise self.unexpected("the name of a field")
        self._advance()
        if self._now.text == "(" and self._now.kind == "op":
            return self._call(name, target)
        return Member(target.start, name.end, self._height(name.start, target), target, name.text)

    def _conditional(self, test: Node, token: Token, binds: int) -> Node:
        then = self.expression(binds)
        self.expect(":")
        otherwise = self.expression(binds - 1)
        height = self._height(token.start, test, then, otherwise)
        return Conditional(test.start, otherwise.end, height, test, then, otherwise)

    def _chain(self, left: Node, token: Token, binds: int) -> Node:
        parts = [left, self.expression(binds)]
        while self._now.text == token.text and self._now.kind == "op":
            self._advance()
            parts.append(self.expression(binds))
        return Chain(left.start, parts[-1].end, self._height(token.start, *parts), token.text, parts)

    def _prefix(self) -> Node:
        token = self._now
        if token.kind == "end":
            raise self.unexpected("a value")
        self._advance()
        match token.kind:
            case "name":
                return self._named(token)
            case "string":
                return Literal(token.start, token.end, 1, string_value(self.source, token))
            case "int":
                return self._integer(token, negative=False)
            case "double":
                return self._double(token, 1.0, token.start)
        if token.text in self.grammar.unary:
            return self._unary(token)
        match token.text:
            case "(":
                node = self.expression(0)
                self.expect(")")
                return node
            case "[":
                items, end = self._items("]", trailing=True)
                return ListOf(token.start, end, self._height(token.start, *items), items)
            case "{":
                return self._map(token)
        raise self.unexpected("a value", token)

    def _named(self, token: Token) -> Node:
        if token.text in self.grammar.constants:
            return Literal(token.start, token.end, 1, self.grammar.constants[token.text])
        if token.text in self.grammar.keywords or token.text in self.grammar.reserved:
            raise self.source.refusal(f"`{token.text}` is a reserved word and can't be a name", token.start)
        if self._now.text == "(" and self._now.kind == "op":
            return self._call(token, None)
        return Name(token.start, token.end, 1, token.text)

    def _unary(self, token: Token) -> Node:
        following = self._now
        if token.text == "-" and following.kind == "int":
            self._advance()
            return self._integer(following, negative=True, start=token.start)
        if token.text == "-" and following.kind == "double":
            self._advance()
            return self._double(following, -1.0, token.start)
        operand = self.expression(self.grammar.unary[token.text])
        return Unary(token.start, operand.end, self._height(token.start, operand), token.text, operand)

    def _double(self, token: Token, sign: float, start: int) -> Literal:
        value = float(token.text)
        if math.isinf(value):
            raise self.source.refusal("a number must fit into a double", token.start)
        return Literal(start, token.end, 1, sign * value)

    def _integer(self, token: Token, *, negative: bool, start: int | None = None) -> Literal:
        text = token.text.lower()
        unsigned = text.endswith("u")
        digits = text.removesuffix("u")
        value = int(digits, 16) if digits.startswith("0x") else int(digits) if len(digits) < 400 else 1 << 64
        if negative and unsigned:
            raise self.source.refusal("an unsigned number has no sign", token.start)
        limit = 1 << 64 if unsigned else (1 << 63) + negative
        if value >= limit:
            kind = "an unsigned number" if unsigned else "a whole number"
            raise self.source.refusal(f"{kind} must fit into 64 bits", token.start)
        begin = token.start if start is None else start
        return Literal(begin, token.end, 1, -value if negative else value, unsigned)

    def _call(self, name: Token, target: Node | None) -> Node:
        self._advance()
        args, end = self._items(")", trailing=False)
        start = name.start if target is None else target.start
        children = args if target is None else [target, *args]
        return Call(start, end, self._height(name.start, *children), name.text, target, args, name.start)

    def _items(self, closing: str, *, trailing: bool) -> tuple[list[Node], int]:
        """What stands between brackets, separated by commas."""
        items: list[Node] = []
        while self._now.text != closing or (items and not trailing):
            items.append(self.expression(0))
            if self._now.text != ",":
                break
            self._advance()
        return items, self.expect(closing)

    def _map(self, token: Token) -> Node:
        entries: list[tuple[Node, Node]] = []
        while self._now.text != "}":
            key = self.expression(0)
            self.expect(":")
            entries.append((key, self.expression(0)))
            if self._now.text != ",":
                break
            self._advance()
        end = self.expect("}")
        height = self._height(token.start, *(node for entry in entries for node in entry))
        return MapOf(token.start, end, height, entries)

    # --- the ground

    def _advance(self) -> None:
        self._at += 1
        self._now = self._tokens[self._at]

    def expect(self, text: str) -> int:
        """Goes past an operator that has to stand here; its end."""
        token = self._now
        if token.kind != "op" or token.text != text:
            raise self.unexpected(f"`{text}`")
        self._advance()
        return token.end

    def unexpected(self, wanted: str, token: Token | None = None) -> InvalidExpression:
        """The refusal of a token, by default the one that stands here."""
        token = token or self._now
        found = "the text ends" if token.kind == "end" else f"there is `{token.text[:40]}`"
        return self.source.refusal(f"expected {wanted}, but {found}", token.start)

    def _height(self, at: int, *children: Node) -> int:
        height = 1 + max((child.height for child in children), default=0)
        if height > MAX_NESTING:
            raise self._too_deep(at)
        return height

    def _too_deep(self, at: int) -> InvalidExpression:
        return self.source.refusal(f"nested deeper than {MAX_NESTING} levels", at)
