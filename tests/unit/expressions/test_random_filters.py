"""Laws that hold for any filter and any payload."""

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidExpression
from holdfast.expressions import compile_filter, equality_key, lookup
from tests.unit.expressions.written import expressions, filters, objects, payloads


def compiled(text):
    """The filter, or None where it is refused."""
    try:
        return compile_filter(text)
    except InvalidExpression as error:
        refused = error
    assert 0 <= refused.offset <= len(text)
    return None


@settings(max_examples=300)
@given(text=st.text(st.characters(codec=None), max_size=40), payload=payloads)
def test_any_text_is_a_filter_or_a_refusal(text, payload):
    """Noise is refused with a place in it, and never breaks anything."""
    found = compiled(text)
    if found is not None:
        found.evaluate(payload)


FRAGMENTS = [
    *"()[]{}.,:?!-+*/%<>'\"",
    "==",
    "&&",
    "||",
    " in ",
    "input",
    ".a",
    "x",
    "1",
    "1.5",
    "2u",
    "'s'",
    "b'",
    "r'",
]
FRAGMENTS += ["has(", "all(x,", "size(", "true", "null", "\\", "\n", "//", "matches(", "_", "é", "0x", "1e9", "if"]


@settings(max_examples=300)
@given(text=st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join), payload=payloads)
def test_any_mixture_of_tokens_is_a_filter_or_a_refusal(text, payload):
    """So is what nearly looks like a filter."""
    found = compiled(text)
    if found is not None:
        found.evaluate(payload)


@settings(max_examples=300)
@given(text=expressions, payload=objects, budget=st.sampled_from([5, 50, 100_000]))
def test_every_filter_gives_a_verdict(text, payload, budget):
    """True, false, or an error with a reason; always the same one, within the budget."""
    found = compiled(text)
    assume(found is not None)
    verdict = found.evaluate(payload, budget=budget)
    event(verdict.code or str(verdict.matched))

    assert verdict == found.evaluate(payload, budget=budget)
    assert verdict.matched is found.matches(payload, budget=budget)
    assert (verdict.error is None) is (verdict.code == "")
    assert not (verdict.matched and verdict.error)
    assert 0 <= verdict.steps <= budget


@settings(max_examples=300)
@given(text=filters | expressions, payload=objects)
def test_required_equalities_hold_in_every_match(text, payload):
    """If a filter matches, each equality it reports is true of the payload, by value and by key."""
    found = compiled(text)
    assume(found is not None)
    matched = found.matches(payload)
    event(f"matched: {matched}, equalities: {len(found.required_equalities())}")

    for path, value in found.required_equalities():
        present, actual = lookup(payload, path)
        holds = present and equality_key(actual) == equality_key(value)
        assert holds or not matched, (path, value)


@settings(max_examples=300)
@given(text=filters | expressions, payload=objects)
def test_an_explanation_agrees_with_the_verdict(text, payload):
    """All parts are true in a match; else there is one that is not, and the line says so."""
    found = compiled(text)
    assume(found is not None)
    verdict = found.evaluate(payload)
    explained = found.explain(payload)

    assert verdict.matched is explained.matched
    assert verdict.matched is all(part.outcome == "true" for part in explained.findings)
    assert explained.text
    assert "\n" not in explained.text
    if not verdict.matched:
        expected = "error" if verdict.error else "false"
        assert expected in {part.outcome for part in explained.findings}


@given(one=payloads, two=payloads)
def test_equal_values_have_equal_keys(one, two):
    """The key of an index and the equality of filters are the same relation, for all that has a key."""
    equal = compile_filter("input[0] == input[1]").matches([one, two])
    keys = equality_key(one), equality_key(two)

    if None in keys:
        assert isinstance(one, list | dict) or isinstance(two, list | dict)
    else:
        assert equal is (keys[0] == keys[1])


@pytest.mark.parametrize("text", ["true", "input.a", "input == {}"])
def test_whitespace_and_comments_change_nothing(text):
    """Only the words count."""
    for payload in ({}, {"a": True}):
        spaced = compile_filter(f"\n  {text}  // why\n")
        assert compile_filter(text).evaluate(payload)[:2] == spaced.evaluate(payload)[:2]
