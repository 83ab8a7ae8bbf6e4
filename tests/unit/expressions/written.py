"""Random filters and payloads, as people and attackers might write them.

Values and literals come from one small pool, so that they meet. Operands are wrapped in `dyn`, so that a mismatch of
types is an error of the evaluation, where it has to be the right one, and not a refusal.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

KEYS = ["a", "b", "c"]
LITERALS = ["0", "1", "-1", "2", "1.0", "0.5", "-2.5", "1u", '""', '"a"', '"ab"', "'é'", '"1"', "true", "false", "null"]
EDGES = ["9223372036854775807", "-9223372036854775808", '"90s"', '"2024-01-01T00:00:00Z"', 'b"a"', "[]", "{}", "[1, 2]"]
EDGES += ['["a", 1]', '{"a": 1}', 'duration("90s")', "timestamp(0)", "int", "3u", "1e18"]
PATHS = ["input.a", "input.b", "input.c", 'input["a"]', "input.c.a", "input.c[0]", "input.z", "input"]

_scalars: st.SearchStrategy[Any] = st.sampled_from(
    [
        0,
        1,
        -1,
        2,
        1.0,
        0.5,
        -2.5,
        "",
        "a",
        "ab",
        "é",
        "1",
        True,
        False,
        None,
        "90s",
        "2024-01-01T00:00:00Z",
        (1 << 63) - 1,
    ]
)
payloads: st.SearchStrategy[Any] = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=5,
)
objects = st.fixed_dictionaries(
    {"a": _scalars, "b": _scalars},
    optional={"c": st.lists(_scalars, max_size=3) | st.dictionaries(st.sampled_from(KEYS), _scalars, max_size=2)},
)

_leaves = st.sampled_from([*PATHS, *PATHS, *LITERALS, *EDGES, "x"])
_FUNCTIONS = ["size", "int", "uint", "double", "string", "bool", "bytes", "type", "timestamp", "duration", "-"]


def _larger_values(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from("+-*/%"), inner).map(lambda of: f"(dyn({of[0]}) {of[1]} dyn({of[2]}))"),
        st.tuples(st.sampled_from(_FUNCTIONS), inner).map(lambda of: f"{of[0]}(dyn({of[1]}))"),
        st.tuples(inner, inner).map(lambda of: f"dyn({of[0]})[dyn({of[1]})]"),
        st.tuples(inner, inner).map(lambda of: f"[{of[0]}, {of[1]}]"),
        st.tuples(inner, inner).map(lambda of: f'{{"a": {of[0]}, "b": {of[1]}}}'),
        st.tuples(inner, inner).map(lambda of: f"dyn({of[0]}).map(x, {of[1]})"),
    )


_values = st.recursive(_leaves, _larger_values, max_leaves=3)


def _compared(of: tuple[str, str, str]) -> str:
    return f"dyn({of[0]}) {of[1]} dyn({of[2]})"


_simple = st.one_of(
    st.tuples(_values, st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in"]), _values).map(_compared),
    st.tuples(_values, st.sampled_from(["contains", "startsWith", "endsWith"]), _values).map(
        lambda of: f"dyn({of[0]}).{of[1]}(dyn({of[2]}))"
    ),
    st.tuples(_values, st.sampled_from(["a", "^a+$", "[ab]|é", "b$"])).map(
        lambda of: f"dyn({of[0]}).matches('{of[1]}')"
    ),
    _values.map(lambda text: f"has(dyn({text}).a)"),
    _values.map(lambda text: f"dyn({text})"),
)


def _larger_conditions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda of: f"({of[0]} {of[1]} {of[2]})"),
        inner.map(lambda text: f"!({text})"),
        st.tuples(inner, inner, inner).map(lambda of: f"({of[0]} ? {of[1]} : {of[2]})"),
        st.tuples(_values, st.sampled_from(["all", "exists", "exists_one"]), inner).map(
            lambda of: f"dyn({of[0]}).{of[1]}(x, {of[2]})"
        ),
        st.tuples(_values, inner).map(lambda of: f"dyn({of[0]}).filter(x, {of[1]}) != []"),
    )


# `x` is the variable of macros; outside of one it would be unknown, so there is always one around.
expressions = st.recursive(_simple, _larger_conditions, max_leaves=4).map(lambda text: f"[input.a].all(x, {text})")
"""Filters that use all of the language, sensibly or not."""

_paths = st.sampled_from(["input.a", "input.b", 'input["a"]', "input.c.a"])
_equal = st.tuples(_paths, st.sampled_from(LITERALS)).flatmap(
    lambda of: st.sampled_from([" == ".join(of), " == ".join(reversed(of))])
)
_conditions = st.one_of(
    _equal,
    _equal,
    st.tuples(_equal, _equal).map(lambda of: f"({of[0]} || {of[1]})"),
    st.tuples(_equal, _equal).map(lambda of: f"({of[0]} && {of[1]})"),
    _paths,
    _paths.map(lambda path: f"!{path}"),
    st.tuples(_paths, st.sampled_from(["<", ">="]), st.sampled_from(["1", "0.5", '"a"'])).map(" ".join),
    st.sampled_from(["has(input.c)", "!has(input.z)", "input.a != 1"]),
)
filters = st.lists(_conditions, min_size=1, max_size=3).map(" && ".join)
"""Filters as people write them: conditions that all have to hold."""
