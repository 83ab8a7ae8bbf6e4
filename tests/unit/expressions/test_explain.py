"""Why a filter did not match, in words."""

import pytest

from holdfast.expressions import Finding, compile_filter

PAYLOAD = {"amount": 40, "type": "order", "tags": ["a"], "flag": False, "name": "x" * 500, "deep": {"n": None}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("input.amount > 100", "input.amount > 100 was false: input.amount is 40"),
        ('input.type == "order" && input.amount > 100', "input.amount > 100 was false: input.amount is 40"),
        (
            'input.type == "x" && input.amount > 100',
            'input.type == "x" was false: input.type is "order"; input.amount > 100 was false: input.amount is 40',
        ),
        ("input.missing > 100", "input.missing > 100 failed: `input` has no field `missing`"),
        ("input.missing > 100 && input.flag", "input.flag was false"),
        ("!has(input.type)", "!has(input.type) was false: input is a map of 6"),
        ("input.type > 1", 'input.type > 1 failed: `>` is not defined for string, int (input.type is "order")'),
        (
            "input.type",
            'input.type failed: true or false was expected here, not a value of type string (input.type is "order")',
        ),
        (
            "input.flag || input.amount ==\n 1",
            "input.flag || input.amount == 1 was false: input.flag is false, input.amount is 40",
        ),
        (
            "input.tags.exists(t, t == input.type)",
            'input.tags.exists(t, t == input.type) was false: input.tags is a list of 1, input.type is "order"',
        ),
        ("[1].exists(input, input == 2)", "[1].exists(input, input == 2) was false"),
        ('input.name == "y"', f'input.name == "y" was false: input.name is "{"x" * 60}…"'),
        ("input.deep.n != null", "input.deep.n != null was false: input.deep.n is null"),
        ("input.amount == 40", "input.amount == 40 was true: input.amount is 40"),
        ("input.flag || input.gone == 1 || false", None),
    ],
)
def test_the_line_names_the_part_that_decided_and_what_it_saw(text, line):
    """What is false comes before what failed; what is true is not mentioned, unless everything is."""
    explained = compile_filter(text).explain(PAYLOAD)

    if line is None:
        assert "failed: `input` has no field `gone` (input.flag is false)" in explained.text
    else:
        assert line == explained.text


def test_findings_have_every_condition():
    """One for each part that has to hold, in the order of the text."""
    explained = compile_filter('input.type == "order" && input.amount > 100 && input.gone').explain(PAYLOAD)

    assert not explained.matched
    assert [
        Finding('input.type == "order"', "true", "", (("input.type", '"order"'),)),
        Finding("input.amount > 100", "false", "", (("input.amount", "40"),)),
        Finding("input.gone", "error", "`input` has no field `gone`", (("input.gone", "missing"),)),
    ] == list(explained.findings)


def test_a_filter_beyond_its_budget_is_explained_by_that():
    """The explanation has the same budget as the evaluation."""
    explained = compile_filter("input.l.all(a, input.l.all(b, a != -1))").explain({"l": list(range(1000))})

    assert not explained.matched
    assert "budget" in explained.text


def test_long_filters_are_cut():
    """One line stays one line."""
    text = " || ".join(f"input.amount == {number}" for number in range(100))
    explained = compile_filter(text).explain(PAYLOAD)

    assert explained.matched
    assert len(compile_filter(text).explain({"amount": -1}).text) < 400


def test_many_reasons_are_counted():
    """Five are told, the others counted."""
    text = " && ".join(f"input.amount == {number}" for number in range(9))

    assert compile_filter(text).explain(PAYLOAD).text.endswith("; and 4 more")
