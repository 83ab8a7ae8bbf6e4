"""Filters: compiled once from text, asked about many payloads."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

from holdfast.errors import ExpressionFailed, InvalidExpression
from holdfast.expressions.cel.analysis import Equality, required_equalities
from holdfast.expressions.cel.budget import DEFAULT_BUDGET, FIRST_LOCAL, LEFT, spent
from holdfast.expressions.cel.compiler import Code, Compiler
from holdfast.expressions.cel.explain import Explanation, explain
from holdfast.expressions.cel.forms import split
from holdfast.expressions.cel.grammar import CEL
from holdfast.expressions.cel.values import not_bool
from holdfast.expressions.lexer import Source
from holdfast.expressions.syntax import Parser

MAX_BYTES = 4096
_TINY = 64
_SHORT = 256


class Verdict(NamedTuple):
    """What a filter says about a payload. An error is no match; `code` is the error's, "" without one."""

    matched: bool
    error: str | None
    steps: int
    code: str = ""


class Filter:
    """A filter ready to be asked. Immutable; may be shared between threads."""

    __slots__ = ("_cost", "_equalities", "_locals", "_run", "text")

    def __init__(
        self,
        text: str,
        code: Code,
        slots: int,
        equalities: Callable[[], tuple[Equality, ...]],
        strings: tuple[str, ...] = (),
    ) -> None:
        self.text = text
        self._run = code.run
        self._cost = code.cost
        self._locals = (*strings, *[None] * (slots - FIRST_LOCAL - len(strings)))
        self._equalities = equalities

    def __repr__(self) -> str:
        return f"Filter({self.text!r})"

    def matches(self, payload: Any, *, budget: int = DEFAULT_BUDGET) -> bool:
        """Whether the payload satisfies the filter. An error, or more steps than the budget, is a no."""
        return self.evaluate(payload, budget=budget).matched

    def evaluate(self, payload: Any, *, budget: int = DEFAULT_BUDGET) -> Verdict:
        """The same with the reason when there is no answer, and the steps it took."""
        frame = [payload, budget - self._cost, *self._locals]
        try:
            if frame[LEFT] < 0:
                raise spent()
            answer = self._run(frame)
            if frame[LEFT] < 0:
                raise spent()
            if answer is not True and answer is not False:
                raise not_bool(answer)
        except ExpressionFailed as error:
            return Verdict(False, error.message, budget - max(frame[LEFT], 0), error.code)
        return Verdict(answer, None, budget - frame[LEFT])

    def required_equalities(self) -> tuple[Equality, ...]:
        """Equalities that hold in every payload this filter matches: keys for an index of filters."""
        return self._equalities()

    def explain(self, payload: Any, *, budget: int = DEFAULT_BUDGET) -> Explanation:
        """Why the payload satisfies the filter or does not, for people."""
        verdict = self.evaluate(payload, budget=budget)
        return explain(self.text, payload, verdict.matched, verdict.error, budget)


def compile_filter(text: str) -> Filter:
    """A filter from its text; refuses with `InvalidExpression` what is not one. The latest are kept and shared."""
    if not isinstance(text, str):
        raise InvalidExpression(f"a filter is text, not {type(text).__name__}")
    if len(text) <= _TINY:
        return _tiny(text)
    return _short(text) if len(text) <= _SHORT else _long(text)


def _compiled(text: str) -> Filter:
    source = Source(text)
    _check_characters(source)
    shared = split(text) if len(text) <= _SHORT else None
    if shared is None:
        return compiled_alone(source)
    form, strings = shared
    return Filter(text, form.code, form.slots, partial(form.equalities, strings), strings)


def compiled_alone(source: Source) -> Filter:
    """A filter that shares nothing."""
    tree = Parser(source, CEL).whole()
    compiler = Compiler(source)
    code = compiler.filter_code(tree)
    return Filter(source.text, code, compiler.slots, partial(required_equalities, tree))


def _check_characters(source: Source) -> None:
    """A filter is stored: what a database would refuse is refused here."""
    try:
        size = len(source.text.encode())
    except UnicodeEncodeError as error:
        raise source.refusal("half of a surrogate pair is not a character", error.start) from None
    if size > MAX_BYTES:
        raise InvalidExpression(f"a filter may have {MAX_BYTES} bytes, this one has {size}: ask for less")
    if "\0" in source.text:
        raise source.refusal(
            "a filter can't contain the character 0; in a string, write \\x00", source.text.index("\0")
        )


# A long text makes hundreds of closures: few of these are kept, so that nobody can fill the memory with filters. Of the
# short ones, each of which may belong to one wait among thousands, about as many as take 50 MB.
_tiny = lru_cache(maxsize=12_288)(_compiled)
_short = lru_cache(maxsize=1024)(_compiled)
_long = lru_cache(maxsize=64)(_compiled)
