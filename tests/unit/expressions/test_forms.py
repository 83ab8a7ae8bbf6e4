"""Filters of one form share their code, and nobody can tell."""

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidExpression
from holdfast.expressions import compile_filter
from holdfast.expressions.cel.filters import compiled_alone
from holdfast.expressions.cel.forms import split
from holdfast.expressions.lexer import Source
from tests.unit.expressions.written import expressions, filters, objects

BUDGETS = [3, 8, 100_000]


def assert_same(text, payloads):
    """The same answers, errors and steps as if it had been compiled alone."""
    shared, alone = compile_filter(text), compiled_alone(Source(text))
    assert shared.required_equalities() == alone.required_equalities()
    for payload in payloads:
        for budget in BUDGETS:
            assert shared.evaluate(payload, budget=budget) == alone.evaluate(payload, budget=budget)


PAYLOADS = [{}, {"a": "x"}, {"a": "y", "b": 1}, {"a": {"b": "x"}}, {"a": ["x"], "b": "it's"}, None, {"a": True}]


@pytest.mark.parametrize(
    "text",
    [
        'input.a == "x"',
        '"x" == input.a',
        'input.a != "x" && input.b == 1',
        'input.a == "x" || input.missing.b == "y"',
        '!(input.a == "x") && input.b == "it\'s"',
        'input.a == "x" && input.a == "x"',
        'input.a == "x" && input.a == "y"',
        'input.a == "x" && [1].exists(i, [2].all(j, i < j)) && input.b == "// no comment"',
        'input.a.b == "x" && input.a == "é 🐟"',
    ],
)
def test_what_a_shared_filter_says_is_what_it_would_say_alone(text):
    assert split(text) is not None
    assert_same(text, PAYLOADS)


@pytest.mark.parametrize(
    "text",
    [
        "input.a == 'x'",  # other quotes
        'input.a == b"x"',  # bytes
        'input.a == r"x"',
        'input.a == "\\x41"',  # an escape
        'input.a == """x"""',
        'input["a"] == "x"',  # a name, which messages show
        'input.a in ["x", "y"]',
        'input.a.startsWith("x")',
        'input.a.matches("^x")',
        'timestamp("2024-01-01T00:00:00Z") < timestamp(0) || input.a == "x"',
        '(input.a == "x" ? input.b : input.a) == "y"',
        'has(input.a) ? input.a == "x" : false',
        '"x" == "x"',
        'input.a == "x" // and "so on"',
        "true",
    ],
)
def test_a_string_that_is_more_than_an_answer_is_compiled_with_its_filter(text):
    assert split(text) is None
    assert_same(text, PAYLOADS)


def test_two_of_one_form_share_their_code_and_keep_their_strings():
    one, two = split('input.a == "x"'), split('input.a == "y"')
    assert one is not None
    assert two is not None
    assert one[0] is two[0]
    assert compile_filter('input.a == "x"').matches({"a": "x"})
    assert compile_filter('input.a == "y"').matches({"a": "y"})
    assert not compile_filter('input.a == "y"').matches({"a": "x"})


@pytest.mark.parametrize("text", ['input.a == "x" &&', 'input.a == "x', 'inptu.a == "x"', 'input.a == "x" "y"'])
def test_a_refusal_points_into_the_text_that_was_given(text):
    with pytest.raises(InvalidExpression) as refused:
        compile_filter(text)
    with pytest.raises(InvalidExpression) as expected:
        compiled_alone(Source(text))
    assert refused.value.message == expected.value.message
    assert refused.value.offset == expected.value.offset


parts = st.builds(
    "{}{}".format,
    st.sampled_from(["", "!"]),
    st.sampled_from(['(input.a == "{}")', '("{}" != input.c.a)', "(input.b)"]),
)
alike = st.builds(
    lambda parts, joins, strings: "".join(
        f"{join}{part.format(text)}" for join, part, text in zip(["", *joins], parts, strings, strict=False)
    ),
    st.lists(parts, min_size=1, max_size=4),
    st.lists(st.sampled_from([" && ", " || "]), min_size=4, max_size=4),
    st.lists(st.sampled_from(["", "a", "ab", "é", "1", "'", "//"]), min_size=4, max_size=4),
)


@settings(max_examples=300)
@given(text=alike | filters | expressions, payloads=st.lists(objects, min_size=1, max_size=3))
def test_any_filter_says_the_same_shared_or_alone(text, payloads):
    try:
        compiled_alone(Source(text))
    except InvalidExpression:
        with pytest.raises(InvalidExpression):
            compile_filter(text)
        assume(False)
    event("shared" if split(text) else "alone")
    assert_same(text, payloads)
