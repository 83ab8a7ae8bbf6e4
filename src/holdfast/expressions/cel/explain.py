"""Why a filter matched or did not: the parts that decided, in the words of the filter, with the values they saw.

Only for people. The verdict itself comes from the evaluation; nothing here changes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast.errors import ExpressionBudget, ExpressionFailed
from holdfast.expressions.cel.analysis import conjuncts
from holdfast.expressions.cel.budget import LEFT, spent
from holdfast.expressions.cel.compiler import Compiler
from holdfast.expressions.cel.grammar import CEL
from holdfast.expressions.cel.macros import MACROS
from holdfast.expressions.cel.times import duration_text, timestamp_text
from holdfast.expressions.cel.values import Duration, Timestamp, not_bool, type_name
from holdfast.expressions.lexer import Source
from holdfast.expressions.syntax import (
    Binary,
    Call,
    Chain,
    Conditional,
    Index,
    ListOf,
    Literal,
    MapOf,
    Member,
    Name,
    Node,
    Parser,
    Unary,
)

_SHOWN = 60
_LONG = 200
_FACTS = 4
_PARTS = 5


class Finding(NamedTuple):
    """One part of a filter: its text, "true", "false" or "error", the reason of an error, and what it looked at."""

    source: str
    outcome: str
    error: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        source = self.source if len(self.source) <= _LONG else f"{self.source[:_LONG]}…"
        if self.outcome == "error":
            # What is missing is what the error says already.
            facts = [fact for fact in self._facts() if not fact.endswith(" is missing")]
            return f"{source} failed: {self.error}" + (f" ({', '.join(facts)})" if facts else "")
        facts = self._facts()
        return f"{source} was {self.outcome}" + (f": {', '.join(facts)}" if facts else "")

    def _facts(self) -> list[str]:
        return [
            f"{path} is {value}"
            for path, value in self.facts[:_FACTS]
            if path != self.source or self.outcome == "error"
        ]


class Explanation(NamedTuple):
    """Whether the filter matched, in one line why, and each part that has to be true with what became of it."""

    matched: bool
    text: str
    findings: tuple[Finding, ...]


def explain(text: str, payload: Any, matched: bool, error: str | None, budget: int) -> Explanation:
    """The parts evaluated one by one, all of them within one budget."""
    search = _Search(Source(text), payload, budget)
    tree = Parser(search.source, CEL).whole()
    findings = tuple(search.findings(tree))
    if matched:
        return Explanation(True, "; ".join(part.text for part in findings[:_PARTS]) or "matched", findings)
    deciding = [part for part in findings if part.outcome == "false"] or [
        part for part in findings if part.outcome == "error"
    ]
    if not deciding:
        return Explanation(False, error or "no match", findings)
    shown = [part.text for part in deciding[:_PARTS]]
    more = len(deciding) - len(shown)
    return Explanation(False, "; ".join(shown) + (f"; and {more} more" if more else ""), findings)


class _Search:
    """Evaluates parts of one filter against one payload."""

    def __init__(self, source: Source, payload: Any, budget: int) -> None:
        self.source = source
        self._payload = payload
        self._left = budget

    def text(self, node: Node) -> str:
        return self.source.slice(node.start, node.end)

    def findings(self, tree: Node) -> Iterator[Finding]:
        """One for each conjunct, as far as the budget goes."""
        try:
            for part in conjuncts(tree):
                yield self._finding(part)
        except ExpressionBudget:
            return

    def _finding(self, node: Node) -> Finding:
        text = self.text(node)
        try:
            answer = self._value(node)
            if answer is not True and answer is not False:
                raise not_bool(answer)
        except ExpressionBudget:
            raise
        except ExpressionFailed as error:
            return Finding(text, "error", error.message, self._facts(node))
        return Finding(text, "true" if answer else "false", "", self._facts(node))

    def _value(self, node: Node) -> Any:
        compiler = Compiler(self.source)
        code = compiler.code(node)
        frame = [self._payload, self._left - code.cost, *[None] * compiler.slots]
        try:
            if frame[LEFT] < 0:
                raise spent()
            return code.run(frame)
        finally:
            self._left = max(frame[LEFT], 0)

    def _facts(self, node: Node) -> tuple[tuple[str, str], ...]:
        """What the part looked at in the payload, each path once."""
        found: dict[str, str] = {}
        for path in _inputs(node, frozenset()):
            text = self.text(path)
            if text not in found:
                found[text] = self._fact(path)
        return tuple(found.items())

    def _fact(self, path: Node) -> str:
        try:
            return shown(self._value(path))
        except ExpressionBudget:
            raise
        except ExpressionFailed:
            return "missing"


def _inputs(node: Node, bound: frozenset[str]) -> Iterator[Node]:
    """The longest paths into the payload that a node reads, outside of what depends on a macro's variable."""
    if _reads_input(node):
        if "input" not in bound:
            yield node
        return
    for child, names in _children(node, bound):
        yield from _inputs(child, names)


def _reads_input(node: Node) -> bool:
    match node:
        case Name(name="input"):
            return True
        case Member(target=target):
            return _reads_input(target)
        case Index(target=target, key=Literal()):
            return _reads_input(target)
    return False


def _children(node: Node, bound: frozenset[str]) -> Iterator[tuple[Node, frozenset[str]]]:
    match node:
        case Call(name=name, target=Node() as target, args=[Name(name=variable), *bodies]) if name in MACROS:
            yield target, bound
            yield from ((body, bound | {variable}) for body in bodies)
            return
        case Call(name="has", target=None, args=[Member(target=target)]):
            yield target, bound
            return
    yield from ((child, bound) for child in _plain_children(node))


def _plain_children(node: Node) -> list[Node]:
    match node:
        case Member(target=target):
            return [target]
        case Index(target=target, key=key):
            return [target, key]
        case Call(target=callee, args=args):
            return args if callee is None else [callee, *args]
        case ListOf(items=items):
            return items
        case MapOf(entries=entries):
            return [child for entry in entries for child in entry]
        case Unary(operand=operand):
            return [operand]
        case Binary(left=left, right=right):
            return [left, right]
        case Chain(parts=parts):
            return parts
        case Conditional(test=test, then=then, otherwise=otherwise):
            return [test, then, otherwise]
    return []


def shown(value: Any) -> str:
    """A value in a few words, however large it is."""
    match value:
        case None | bool() | float():
            return json.dumps(value)
        case int():
            return str(value) if abs(value) < 1 << 64 else "a very large number"
        case str():
            part = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
            return json.dumps(part, ensure_ascii=False).encode("utf-8", "replace").decode()
        case Timestamp():
            return timestamp_text(value)
        case Duration():
            return duration_text(value)
        case list():
            return f"a list of {len(value)}"
        case dict():
            return f"a map of {len(value)}"
    return f"a value of type {type_name(value)}"
