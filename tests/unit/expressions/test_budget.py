"""Nothing hostile runs for long or grows large: what a filter costs is counted, and the count is bounded."""

from typing import Any

import pytest

from holdfast.errors import ExpressionBudget, InvalidExpression
from holdfast.expressions import compile_filter
from holdfast.expressions.cel.budget import DEFAULT_BUDGET, FIRST_LOCAL, LEFT
from holdfast.expressions.cel.compiler import Compiler
from holdfast.expressions.cel.grammar import CEL
from holdfast.expressions.lexer import Source
from holdfast.expressions.syntax import Parser

LONG = "a" * 2_000_000
SAME = "".join(["a"] * 2_000_000)  # another object, so that identity does not answer for equality
DOUBLED = ".map(x, x + x)" * 40
PAIRED = ".map(x, [x, x])" * 30

EXPENSIVE = {
    "27 million rounds of map": (
        "input.l.map(a, input.l.map(b, input.l.map(c, a * b * c))).size() == 1",
        {"l": list(range(300))},
    ),
    "27 million rounds of all": ("input.l.all(a, input.l.all(b, input.l.all(c, true)))", {"l": list(range(300))}),
    "a cross product of lists": ("input.l.exists(a, input.l.exists(b, a == b + 100000))", {"l": list(range(2000))}),
    "rounds that all fail": ("input.l.all(a, a.x == 1)", {"l": list(range(100_000))}),
    "a text that doubles": (f"[input.s]{DOUBLED}.size() == 1", {"s": "0123456789"}),
    "bytes that double": (f"[b'0123456789']{DOUBLED}.size() == 1", {}),
    "a list that doubles": (f"[[1]]{DOUBLED}.size() == 1", {}),
    "pairs of pairs compared": (f"[[1]]{PAIRED} == [[1]]{PAIRED}", {}),
    "long texts compared in a loop": ("input.l.all(x, input.a == input.b)", {"l": [0] * 1000, "a": LONG, "b": SAME}),
    "long texts ordered in a loop": ("input.l.all(x, input.a <= input.b)", {"l": [0] * 1000, "a": LONG, "b": SAME}),
    "long texts searched in a loop": (
        "input.l.all(x, !input.a.contains(input.n))",
        {"l": [0] * 1000, "a": LONG, "n": "a" * 50_000 + "b"},
    ),
    "short texts searched the slow way": (
        "input.l.all(x, !input.a.contains(input.n))",
        {"l": [0] * 1000, "a": "a" * 29_000, "n": "a" * 98 + "b"},
    ),
    "long prefixes": ("input.l.all(x, input.a.startsWith(input.b))", {"l": [0] * 1000, "a": LONG, "b": SAME}),
    "long suffixes": ("input.l.all(x, input.a.endsWith(input.b))", {"l": [0] * 1000, "a": LONG, "b": SAME}),
    "long texts rewritten": ("input.l.all(x, input.a.upperAscii() != '')", {"l": [0] * 1000, "a": LONG}),
    "long texts trimmed": ("input.l.all(x, input.a.trim() != '')", {"l": [0] * 1000, "a": LONG}),
    "long texts converted": ("input.l.all(x, bytes(input.a) != b'')", {"l": [0] * 1000, "a": LONG}),
    "texts looked up in lists": (
        "input.l.all(x, !(input.n in input.m))",
        {"l": [0] * 1000, "n": "a" * 4000 + "b", "m": ["a" * 4000 + "c"] * 500},
    ),
    "numbers looked up in lists": ("input.l.all(x, !(-1 in input.l))", {"l": list(range(1000))}),
    "equal lists in a loop": ("input.l.all(x, input.l == input.m)", {"l": list(range(5000)), "m": list(range(5000))}),
    "equal maps in a loop": (
        "input.l.all(x, input.a == input.b)",
        {"l": [0] * 1000, "a": {str(n): n for n in range(5000)}, "b": {str(n): n for n in range(5000)}},
    ),
    "a pattern on a long text": ("input.a.matches('(a+)+$')", {"a": LONG}),
    "a pattern in a loop": ("input.l.all(x, input.a.matches('^(a|b)*c?$'))", {"l": [0] * 1000, "a": "ab" * 500}),
}


@pytest.mark.parametrize("what", EXPENSIVE)
def test_an_expensive_filter_ends_at_its_budget(what):
    """The verdict is no match, the reason the budget, and no step is done beyond it."""
    text, payload = EXPENSIVE[what]

    verdict = compile_filter(text).evaluate(payload)

    assert (False, "expression_budget", DEFAULT_BUDGET) == (verdict.matched, verdict.code, verdict.steps)
    assert "budget" in (verdict.error or "")


@pytest.mark.parametrize(
    "text",
    ["input.l.all(x, true) || true", "!(input.l.all(x, true) && false)", "[1].exists(y, input.l.all(x, true)) || true"],
)
def test_a_spent_budget_is_not_an_error_that_or_forgives(text):
    """`||` and `&&` forgive errors of the payload; the end of the budget is the end."""
    assert "expression_budget" == compile_filter(text).evaluate({"l": [0] * 60_000}).code


@pytest.mark.parametrize(
    ("text", "growth"),
    [
        ("[input.s].map(x, x + x)", 2_000_000),
        ("input.l.map(x, input.s + string(x))", 4_000_000),
    ],
)
def test_what_is_built_stays_small(text, growth):
    """All text a filter makes together is a few million characters at most, by the price of making it."""
    source = Source(text)
    compiler = Compiler(source)
    run = compiler.code(Parser(source, CEL).whole()).run
    payload = {"s": "a" * 1000, "l": list(range(10_000))}
    frame: list[Any] = [payload, DEFAULT_BUDGET, *[None] * (compiler.slots - FIRST_LOCAL)]

    try:
        made = sum(map(len, run(frame)))
    except ExpressionBudget:
        made = 0

    assert made <= growth
    assert frame[LEFT] < DEFAULT_BUDGET


def test_steps_are_the_same_every_time():
    """A count, not a clock: two evaluations of the same take the same steps, whatever was remembered in between."""
    searched = compile_filter("input.l.exists(x, x.matches('b+c')) && input.l.size() > 2")
    payload = {"l": ["aaa", "abb", "abbc"]}

    assert searched.evaluate(payload) == searched.evaluate(payload)
    assert searched.evaluate(payload).steps > len("aaaabbabbc")


def test_a_plain_filter_takes_a_handful_of_steps():
    """Each node of the tree is one step."""
    assert 9 == compile_filter("input.a == 1 && input.b > 2").evaluate({"a": 1, "b": 3}).steps


def test_the_budget_is_an_argument():
    """The same filter is stopped by a smaller budget, and goes on with a larger one."""
    searched = compile_filter("input.l.all(x, x >= 0)")
    payload = {"l": list(range(50_000))}

    assert "expression_budget" == searched.evaluate(payload).code
    assert searched.matches(payload, budget=1_000_000)
    assert not searched.matches({"l": []}, budget=0)
    assert "expression_budget" == searched.evaluate({"l": []}, budget=2).code


def test_a_large_honest_payload_is_within_the_budget():
    """Ten thousand elements and a long text are no attack."""
    payload = {"items": [{"sku": f"s{n}"} for n in range(10_000)], "text": "lorem ipsum " * 20_000}
    honest = compile_filter('input.items.exists(i, i.sku == "s9999") && input.text.contains("ipsum lorem")')

    assert honest.evaluate(payload).matched


def test_values_nested_too_deep_are_not_compared():
    """Payloads made in Python may be deeper than any decoder allows: an error, not the end of the stack."""
    one: list = []
    two: list = []
    for _ in range(5000):
        one, two = [one], [two]

    verdict = compile_filter("input.one == input.two").evaluate({"one": one, "two": two})

    assert "nested deeper" in (verdict.error or "")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 2000 + "true" + ")" * 2000,
        "+".join(["1"] * 2000) + " == 1",
        "!" * 4000 + "true",
        "input" + ".a" * 2000,
        "input" + "['a']" * 500,
        "[" * 2000 + "]" * 2000,
        "{'a':" * 600 + "1" + "}" * 600,
        "true ? true : " * 290 + "true",
        "size(" * 600,
        "input.l" + ".map(x, x)" * 300,
    ],
)
def test_deep_expressions_are_refused_cleanly(text):
    """Depth is refused by its limit while it is read, not by Python's stack."""
    with pytest.raises(InvalidExpression, match="nested deeper than 50"):
        compile_filter(text)


def test_huge_texts_are_refused_by_their_size():
    """Before anything is read."""
    with pytest.raises(InvalidExpression, match="4096 bytes, this one has 39999"):
        compile_filter("+".join(["1"] * 20_000))
