"""Equalities a filter requires, and the keys under which it can be found."""

import pytest

from holdfast.expressions import Equality, compile_filter, equality_key, lookup


@pytest.mark.parametrize(
    ("text", "equalities"),
    [
        ('input.order == "o-1"', [(("order",), "o-1")]),
        ('"o-1" == input.order', [(("order",), "o-1")]),
        ("input.a.b == 1 && input.c > 2", [(("a", "b"), 1)]),
        ('input["a b"].c == null', [(("a b", "c"), None)]),
        ("input.a == 1 && (input.b == 2.5 && input.c == true)", [(("a",), 1), (("b",), 2.5), (("c",), True)]),
        ("input.flag && !input.other", [(("flag",), True), (("other",), False)]),
        ("input.a == 1u && input.a == 1.0 && input.a == 2", [(("a",), 1.0), (("a",), 2)]),
        ("input.a == -1", [(("a",), -1)]),
        ("input.a == 1 || input.b == 2", []),
        ("!(input.a == 1)", []),
        ("input.a != 1", []),
        ("input.a == input.b", []),
        ("input.a == 1 ? input.b == 2 : false", []),
        ("input.l.exists(x, x == 1)", []),
        ("[1].exists(input, input.a == 1)", []),
        ("input.l[0] == 1", []),
        ("input == 1", []),
        ("input.a == b'x'", []),
        ("input.a == [1]", []),
        ("true && input.a.size() == 1", []),
    ],
)
def test_equalities_that_every_match_satisfies(text, equalities):
    """Those among the conditions that all have to hold, with the value on either side."""
    assert [Equality(*one) for one in equalities] == list(compile_filter(text).required_equalities())


@pytest.mark.parametrize(
    "same", [(1, 1.0), (0, -0.0, 0.0), (1 << 62, float(1 << 62)), (1 << 80, float(1 << 80)), ("a" * 500, "a" * 500)]
)
def test_equal_values_share_a_key(same):
    """However a number is written in JSON, it is found."""
    assert 1 == len({equality_key(value) for value in same})


def test_different_values_have_different_keys():
    """Nothing but equal numbers share one."""
    values = [None, True, False, 0, 1, 1.5, "", "0", "1", "true", "null", "n:1", "s:", "a" * 500, "a" * 501, 1 << 80]
    values += [(1 << 53) + 1, float(1 << 53), "\0", "\ud800", 1e300, -1e300, "é"]

    assert len(values) == len({equality_key(value) for value in values})


@pytest.mark.parametrize(
    "value",
    ["x" * 10_000, "\0", "\ud800", pytest.param(10**5000, id="10**5000"), -(10**400), 1.7e308, 2.5e-300, "é" * 101],
)
def test_a_key_is_short_text_that_any_database_takes(value):
    """Long and odd values are hashed."""
    key = equality_key(value)

    assert key is not None
    assert len(key.encode()) < 250
    assert "\0" not in key


@pytest.mark.parametrize("value", [[], {}, [1], {"a": 1}, b"x"])
def test_lists_and_maps_have_no_key(value):
    """No literal equals them."""
    assert equality_key(value) is None


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ((), (True, {"a": {"b": None}, "l": [1]})),
        (("a", "b"), (True, None)),
        (("a", "c"), (False, None)),
        (("a", "b", "c"), (False, None)),
        (("l", "0"), (False, None)),
        (("x",), (False, None)),
    ],
)
def test_lookup_follows_maps_alone(path, found):
    """As a filter would; null is a value, and a missing field is none."""
    assert found == lookup({"a": {"b": None}, "l": [1]}, path)
