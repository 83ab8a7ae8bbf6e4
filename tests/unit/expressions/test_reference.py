"""Our CEL and the reference implementation (cel-expr-python, in C++) give the same answers."""

import math
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, event, example, given, settings

from holdfast.errors import ExpressionFailed, InvalidExpression
from holdfast.expressions import compile_filter
from holdfast.expressions.cel.budget import DEFAULT_BUDGET
from holdfast.expressions.cel.compiler import Compiler
from holdfast.expressions.cel.grammar import CEL
from holdfast.expressions.cel.values import CelType, Duration, Timestamp, type_name
from holdfast.expressions.lexer import Source
from holdfast.expressions.syntax import Parser
from tests.unit.expressions.test_filters import PAYLOAD, TRUE
from tests.unit.expressions.written import expressions, filters, objects

cel = pytest.importorskip(
    "cel_expr_python.cel", reason="the reference is not installed here: pip install cel-expr-python"
)

ENVIRONMENT = cel.NewEnv(variables={"input": cel.Type.DYN})

# Where we differ on purpose: the reference rounds large whole numbers when it compares them with a double, allows less
# for names of functions, and knows the functions of its string extension only when told.
OURS_ALONE = ("9007199254740993", "Ascii()", "input.large")


def reference(text: str, payload: object) -> bool | None:
    """True, false, or None for an error. Types are not checked in advance, as with a payload of unknown types."""
    try:
        answer = ENVIRONMENT.compile(text, disable_check=True).eval(data={"input": payload})
    except RuntimeError:
        return None
    return answer.plain_value() if answer.type() == cel.Type.BOOL else None


def ours(text: str, payload: object) -> bool | None:
    verdict = compile_filter(text).evaluate(payload)
    return None if verdict.error else verdict.matched


@pytest.mark.parametrize("text", [text for text in TRUE.strip().splitlines() if not any(x in text for x in OURS_ALONE)])
def test_the_reference_agrees_with_our_table(text):
    """What we call true in CEL is true there."""
    payload = {key: value for key, value in PAYLOAD.items() if key != "large"}

    assert reference(text, payload) is True


def _has_large_number(text: str, payload: object) -> bool:
    return "922337203685477580" in text or "922337203685477580" in repr(payload)


@settings(max_examples=300)
@given(text=filters | expressions, payload=objects)
@example(text="input.a == 1 || input.b", payload={"a": 1})
@example(text="input.a && input.b", payload={"a": 1, "b": False})
def test_random_filters_get_the_same_answer(text, payload):
    """True, false or an error: the same as the reference says."""
    assume(not ("double" in text and _has_large_number(text, payload)))  # the reference rounds them to compare
    try:
        found = ours(text, payload)
    except InvalidExpression:
        assume(False)
    event(str(found))

    assert reference(text, payload) is found


# --- every operator and function on every kind of value -----------------------------------------------------------

VALUES = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "7",
    "-2",
    "9223372036854775807",
    "-9223372036854775808",
    "0u",
    "3u",
    "18446744073709551615u",
    "0.0",
    "1.0",
    "-0.5",
    "3.75",
    "1e18",
    "123456789.5",
    "1e-5",
    '""',
    '"a"',
    '"ab"',
    '"é"',
    '"12"',
    '"-1.5"',
    '"true"',
    '"1h"',
    '"1970-01-01T00:00:01Z"',
    'b""',
    'b"ab"',
    "[]",
    "[1]",
    '[1.0, "a"]',
    "[[], null]",
    "{}",
    '{"a": 1}',
    '{"a": 1.0, "b": null}',
    'timestamp("2024-02-29T12:30:45.5Z")',
    'timestamp("0001-01-01T00:00:00Z")',
    'timestamp("9999-12-31T23:59:59Z")',
    'duration("0s")',
    'duration("-90.5s")',
    'duration("1h")',
]

OPERATORS = ["==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in", "&&", "||"]
FUNCTIONS = [
    "size",
    "int",
    "uint",
    "double",
    "string",
    "bool",
    "bytes",
    "timestamp",
    "duration",
    "type",
    "dyn",
    "-",
    "!",
]
METHODS = ["contains", "startsWith", "endsWith"]
PARTS = [
    "FullYear",
    "Month",
    "Date",
    "DayOfMonth",
    "DayOfWeek",
    "DayOfYear",
    "Hours",
    "Minutes",
    "Seconds",
    "Milliseconds",
]
ERROR = ("error", None)


def reference_value(text: str) -> tuple[str, Any]:
    try:
        answer = ENVIRONMENT.compile(text, disable_check=True).eval(data={"input": {}})
    except RuntimeError:
        return ERROR
    kind = answer.type().name().partition("<")[0].lower()
    return (kind, None if kind == "type" else _plain(answer.plain_value())) if kind != "error" else ERROR


def our_value(text: str) -> tuple[str, Any]:
    """A refusal is an error as well: what we refuse must not work anywhere."""
    source = Source(text)
    compiler = Compiler(source)
    try:
        value = compiler.code(Parser(source, CEL).whole()).run([{}, DEFAULT_BUDGET, *[None] * compiler.slots])
    except (InvalidExpression, ExpressionFailed):
        return ERROR
    kind = type_name(value).removeprefix("google.protobuf.").removesuffix("_type").lower()
    return kind, _plain(value)


def _plain(value: Any) -> Any:
    """Types by name alone; times as Python has them; a number that is none as text, because it equals nothing."""
    match value:
        case CelType():
            return None
        case Timestamp(nanos):
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanos // 1000)
        case Duration(nanos):
            return timedelta(microseconds=nanos // 1000)
        case bytearray():
            return bytes(value)
        case float() if math.isnan(value):
            return "nan"
        case list():
            return [_plain(item) for item in value]
    return value


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_an_operator_means_the_same_for_all_types(op):
    """Every pair of values, whether it makes sense or not."""
    # With a known type that is no truth value, we refuse what the reference would decide by the other side.
    written = "dyn({0}) {1} dyn({2})" if op in {"&&", "||"} else "{0} {1} {2}"
    texts = [written.format(left, op, right) for left, right in product(VALUES, VALUES)]

    assert [] == [
        (text, theirs, ours_) for text in texts if (theirs := reference_value(text)) != (ours_ := our_value(text))
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_means_the_same_for_all_types(name):
    """Every value, whether it makes sense or not."""
    texts = [f"{name}({value})" for value in VALUES if name != "int" or value not in {"true", "false"}]  # not standard

    assert [] == [
        (text, theirs, ours_) for text in texts if (theirs := reference_value(text)) != (ours_ := our_value(text))
    ]


@pytest.mark.slow
def test_methods_mean_the_same_for_all_types():
    """Functions of texts with every pair, parts of times with every value and zone."""
    texts = [f"{one}.{name}({two})" for name, one, two in product(METHODS, VALUES, VALUES)]
    zones = ["", '"UTC"', '"+05:30"', '"-11:00"', '"02:00"', '"nowhere"']
    inner = [value for value in VALUES if "0001-01-01" not in value and "9999-12-31" not in value]  # no year 0 here
    texts += [f"{value}.get{part}({zone})" for part, value, zone in product(PARTS, inner, zones)]
    texts += [f"{one}[{two}]" for one, two in product(VALUES, VALUES)]

    assert [] == [
        (text, theirs, ours_) for text in texts if (theirs := reference_value(text)) != (ours_ := our_value(text))
    ]
