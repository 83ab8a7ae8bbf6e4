"""What a filter says: CEL's meaning of operators, functions and macros; what is refused, and when."""

import pytest

from holdfast.errors import InvalidExpression
from holdfast.expressions import Verdict, compile_filter

PAYLOAD = {
    "n": 5,
    "d": 1.5,
    "s": "héllo",
    "t": True,
    "nothing": None,
    "list": [1, 2, 3],
    "map": {"a": 1, "_x": 2, "b c": 3},
    "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}],
    "at": "2024-03-05T06:07:08.123Z",
    "large": 1 << 70,
}

TRUE = """
input.n == 5
5.0 == input.n
input.n == 5u
input.n != "5"
input.t != 1
input.t
!!input.t
input.nothing == null
input.nothing != false
1 < 1.5 && 1u < 2 && 2.5 > 2u
input.large > 1 && input.large == input.large
input.n > 4 && input.n >= 5 && input.n < 6 && input.n <= 5
4 < input.n && 6 > input.n && 5 <= input.n && 5 >= input.n
"a" < "b" && b"a" < b"b" && false < true
input.n + 1 == 6 && input.n - 6 == -1 && input.n * 2 == 10
7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1
input.d + 0.5 == 2.0 && input.d / 0.0 > 1e300 && -input.d < 0.0
1.0 / 0.0 == -(-1.0 / 0.0) && 0.0 / 0.0 != 0.0 / 0.0
5u - 3u == 2u && 3u * 2u == 6
"a" + "b" == "ab" && b"a" + b"b" == b"ab" && [1] + [2] == [1, 2]
size(input.s) == 5 && input.s.size() == 5 && size(b"é") == 2
size(input.list) == 3 && input.map.size() == 3
input.s.startsWith("hé") && input.s.endsWith("lo") && input.s.contains("éll")
"MiXé".lowerAscii() == "mixé" && "MiXé".upperAscii() == "MIXé" && " a\t".trim() == "a"
input.s.matches("^h.l+o$") && matches(input.s, "ll")
input.list[0] == 1 && input.list[1.0] == 2 && input.list[2u] == 3
input.map.a == 1 && input.map["_x"] == 2 && input["map"]["b c"] == 3
{"a": 1, 2: "two", true: 3}[2.0] == "two"
{true: "yes", 1: "one"}[true] == "yes"
2 in input.list && 2.0 in input.list && !("2" in input.list)
"a" in input.map && !("z" in input.map) && !(1 in input.map)
"x" in ["w", "x"] && true in [true] && !(true in [1])
[1, [2, {"k": null}]] == [1.0, [2u, {"k": null}]]
{"a": 1, "b": [2]} == {"b": [2.0], "a": 1u}
[1] != [1, 2] && {"a": 1} != {"b": 1} && [] != {}
has(input.n) && !has(input.zzz) && has(input.nothing) && has({"k": 1}.k)
input.n > 3 ? input.t : false
(input.n > 9 ? "x" : "y") == "y"
input.list.all(x, x > 0) && !input.list.all(x, x > 1) && [].all(x, x)
input.list.exists(x, x == 2) && ![].exists(x, x)
input.list.exists_one(x, x > 2) && !input.list.exists_one(x, x > 1)
input.list.map(x, x * 2) == [2, 4, 6] && input.list.map(x, x > 1, x + 1) == [3, 4]
input.list.filter(x, x % 2 == 1) == [1, 3]
input.map.exists(k, k == "a") && {true: 1}.all(k, k) && {7: 1}.map(k, k) == [7]
input.items.exists(i, i.sku == "b" && i.n == 2)
input.list.all(x, input.list.exists(y, y == x && input.list.exists(z, z == x + y - x)))
[1, 2].map(x, [3, 4].map(x, x)) == [[3, 4], [3, 4]]
[[1], [2]].map(x, x.map(y, y + 1)) == [[2], [3]]
false && input.zzz || true
input.zzz == 1 || input.n == 5
!(input.zzz == 1 && input.n == 6)
[1, "a", 0].exists(x, x < 1) && ![1, "a", 0].all(x, x > 0)
int("-12") == -12 && int(1.9) == 1 && int(-1.9) == -1 && int(5u) == 5 && int(timestamp(7)) == 7
uint("3") == 3u && uint(3.7) == 3 && double("1e3") == 1000.0 && double(2) == 2.0
string(1) == "1" && string(1.0) == "1" && string(1e6) == "1e+06"
string(0.00012) == "0.00012" && string(true) == "true" && string(123456.5) == "123456.5"
string(b"abc") == "abc" && bytes("é") == b"\\xc3\\xa9" && string(1e-7) == "1e-07" && string(-0.0) == "-0"
bool("true") && !bool("f")
type(1) == int && type(1.0) == double && type(1u) == uint && type("") == string && type(b"") == bytes
type(null) == null_type && type([]) == list && type({}) == map && type(true) == bool && type(int) == type
type(timestamp(0)) == google.protobuf.Timestamp && type(duration("1s")) == google.protobuf.Duration
dyn(1) == 1 && dyn(input.t)
timestamp("2024-01-01T00:00:00+02:00") == timestamp("2023-12-31T22:00:00Z")
timestamp(input.at) > timestamp("2024-01-01T00:00:00Z") && timestamp(1700000000) < timestamp(input.at)
timestamp(input.at) - timestamp("2024-03-05T06:07:08Z") == duration("123ms")
timestamp(input.at) + duration("1h") > timestamp(input.at) - duration("1h")
duration("1h30m") == duration("90m") && duration("1.5s") == duration("1500ms") && duration("-1m") < duration("0")
duration("1h") + duration("1m") - duration("60s") == duration("3600s")
string(duration("1.5s")) == "1.500s" && string(timestamp(input.at)) == "2024-03-05T06:07:08.123Z"
timestamp(input.at).getFullYear() == 2024 && timestamp(input.at).getMonth() == 2 && timestamp(input.at).getDate() == 5
timestamp(input.at).getDayOfMonth() == 4 && timestamp(input.at).getDayOfWeek() == 2
timestamp(input.at).getDayOfYear() == 64 && timestamp("2024-12-31T23:59:59Z").getDayOfYear("+00:01") == 0
timestamp(input.at).getHours("+02:30") == 8 && timestamp(input.at).getMinutes("+02:30") == 37
timestamp(input.at).getSeconds() == 8 && timestamp(input.at).getMilliseconds() == 123
duration("3723.5s").getHours() == 1 && duration("3723.5s").getMinutes() == 62 && duration("-1.5s").getSeconds() == -1
9007199254740993 > 9007199254740992.0 && 9007199254740993 != 9007199254740992.0
-9223372036854775808 < -9223372036854775807
"""


@pytest.mark.parametrize("text", TRUE.strip().splitlines())
def test_true_in_cel_is_true_here(text):
    """A table of CEL's rules; each line holds for the payload above."""
    assert (True, None) == compile_filter(text).evaluate(PAYLOAD)[:2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("input.zzz == 1", "`input` has no field `zzz`"),
        ("input.map.zzz.y == 1", "`input.map` has no field `zzz`"),
        ("input.n.x == 1", "`input.n` has no fields: it is a value of type int"),
        ('input["zzz"] == 1', '`input` has no key "zzz"'),
        ("input.list[3] == 1", "`input.list` has no item 3: it has 3"),
        ("input.list[-1] == 1", "has no item -1"),
        ("input.list[0.5] == 1", "whole number"),
        ('input.list["a"] == 1', "whole number"),
        ("input.n[0] == 1", "has no index"),
        ("input[input.nothing] == 1", "`[]` is not defined for map, null_type"),
        ("has(input.zzz.y)", "no field `zzz`"),
        ("has(input.n.y)", "no fields"),
        ("input.s > 1", "`>` is not defined for string, int"),
        ("input.nothing < input.nothing", "`<` is not defined"),
        ("input.list <= input.list", "`<=` is not defined for list, list"),
        ("input.n + 1.0 > 0.0", "`+` is not defined for int, double"),
        ("input.d % input.n == 0", "`%` is not defined for double, int"),
        ("-input.s == 1", "`-` is not defined for string"),
        ("input.n / 0 == 0", "division by zero"),
        ("input.n % 0 == 0", "zero"),
        ("input.n + 9223372036854775807 > 0", "64 bits"),
        ("input.n * -9223372036854775807 > 0", "64 bits"),
        ("-(input.n - 5 + -9223372036854775808) > 0", "64 bits"),
        ("uint(input.n) - 6u > 0u", "64 bits"),
        ("input.large + 1 > 0", "64 bits"),
        ("int(input.large) > 0", "64 bits"),
        ("int(1e19) > 0", "64 bits"),
        ("uint(-1) == 1u", "64 bits"),
        ("input.n", "true or false was expected here, not a value of type int"),
        ("input.n && input.t", "true or false was expected"),
        ("input.s || !input.t", "true or false was expected"),
        ("!input.n", "true or false was expected"),
        ("input.n ? true : true", "true or false was expected"),
        ("input.list.all(x, input.n)", "true or false was expected"),
        ("input.list.filter(x, input.n) == []", "true or false was expected"),
        ("input.zzz || input.n == 6", "no field"),
        ("input.n == 5 && input.zzz", "no field"),
        ('["a", 1].exists_one(x, x < "b")', "`<` is not defined"),
        ("input.s.all(x, true)", "`all` is not defined for string"),
        ("1 in input.s", "`in` is not defined for int, string"),
        ("[] in input.map", "`in` is not defined"),
        ("size(input.n) == 1", "`size` is not defined for int"),
        ("input.n.contains('x')", "`contains` is not defined for int, string"),
        ("input.n.matches('x')", "`matches` is not defined for int"),
        ("{input.nothing: 1} == {}", "can't be a key"),
        ("{input.d: 1} == {}", "can't be a key"),
        ("{input.n: 1, 5: 2} == {}", "twice"),
        ("int(input.s) == 1", "not a whole number"),
        ("int(' 1') == 1 || int('1_0') == 1 || int('٣') == 3", "not a whole number"),
        ("double('1_0') == 1.0", "not a number"),
        ("bool(input.s)", "not true or false"),
        (r"string(b'\xff') == ''", "not UTF-8"),
        ("timestamp(input.s) == timestamp(0)", "not a timestamp"),
        ("timestamp(input.n * 1000000000000000) == timestamp(0)", "years 1 and 9999"),
        ("duration(input.s) == duration('0')", "not a duration"),
        ("timestamp(input.at) + duration('80000000h') > timestamp(0)", "years 1 and 9999"),
        ("duration('80000000h') + duration(string(input.n) + '0000000h') > duration('0')", "10,000 years"),
        ("timestamp(input.at).getHours('Europe/Berlin') == 1", "use UTC or an offset"),
        ("timestamp(input.at).getHours('+99:00') == 1", "use UTC or an offset"),
    ],
)
def test_an_error_is_no_match_with_a_reason(text, words):
    """What CEL calls an error is a verdict here: not matched, and why."""
    verdict = compile_filter(text).evaluate(PAYLOAD)

    assert not verdict.matched
    assert words in (verdict.error or "")
    assert "expression_failed" == verdict.code
    assert compile_filter(text).matches(PAYLOAD) is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo == 1", "there is no `foo`: the payload is called `input`"),
        ("_x == 1", "there is no `_x`"),
        ("foo(1)", "there is no function `foo`"),
        ("input.foo()", "there is no function `foo`: known are contains"),
        ("input.int()", "`int` is written f(x)"),
        ("contains('a', 'b')", "`contains` is written x.f()"),
        ("all(input.list, true)", "`all` is written list.f(x, …)"),
        ("input.has(a)", "`has` is written has(x.field)"),
        ("eval('1')", "there is no function `eval`"),
        ("input.__class__ == 1", '`_` is reached by index: ["__class__"]'),
        ("has(input._x)", "reached by index"),
        ("input.list.all(_x, true)", "is a name for the element"),
        ("input.list.all(x.y, true)", "is a name for the element"),
        ("input.list.all(x)", "`all` is written list.all(x, condition)"),
        ("input.list.all(x, true) && x", "there is no `x`"),
        ("1 + 2", "true or false, but this gives int"),
        ('"a"', "gives string"),
        ("[true]", "gives list"),
        ("{}", "gives map"),
        ("null", "gives null_type"),
        ("int", "gives type"),
        ("input.list.map(x, x)", "gives list"),
        ("input.a + 'b'", "gives string"),
        ("timestamp(0)", "gives google.protobuf.Timestamp"),
        ("true ? 1 : 2", "gives int"),
        ("input.a && 'b'", "each side of `&&` must be true or false, not string"),
        ("!1", "what is negated must be true or false"),
        ("1 ? true : false", "the question before `?`"),
        ("input.list.exists(x, 1)", "the condition of `exists` must be true or false"),
        ("1 + 'a' == 2", "`+` is not defined for int, string"),
        ("1 < 'a'", "`<` is not defined for int, string"),
        ("input.a < [1]", "`<` is not defined for dyn, list"),
        ("input.a < null", "`<` is not defined"),
        ("1 in 'abc'", "`in` looks into a list or a map"),
        ("'a'.b == 1", "the field `b` is asked of a value of type string"),
        ("'a'[0] == 'a'", "a value of type string has no index"),
        ("input[null] == 1", "can't be an index"),
        ("{1.5: 1} == {}", "can't be a key"),
        ("'a'.all(x, true)", "`all` goes over a list or a map"),
        ("size(1) == 1", "`size` is not defined for int"),
        ("size() == 1", "`size` is not defined for nothing"),
        ("size('a', 'b') == 1", "`size` is not defined for string, string"),
        ("type(1, 2) == int", "takes one value"),
        ("has(input)", "has(input.field)"),
        ("has(input['a'])", "has(input.field)"),
        ("has()", "has(input.field)"),
        ("timestamp('2024-02-30T00:00:00Z') < timestamp(input.at)", "not a timestamp"),
        ("duration('1d') > duration(input.x)", "not a duration"),
        ("input.s.matches(input.p)", "a pattern must be written out"),
        ("input.s.matches('(a')", "the pattern can't be used"),
        ("input.s.matches()", "takes a text and a pattern"),
        ("matches(1, 'a')", "`matches` is not defined for int"),
        ("input.s.matches('" + "a" * 257 + "')", "256 bytes"),
        (" || ".join(["input.s.matches('a{400}')"] * 3), "too large together"),
        ("input.x == '" + "a" * 4096 + "'", "4096 bytes"),
        ("input.x == 'é" + "é" * 2050 + "'", "4096 bytes"),
        ("'\ud800' == 'a'", "surrogate"),
        ("'\0' == 'a'", "character 0"),
    ],
)
def test_a_mistake_is_refused_when_the_filter_is_compiled(text, words):
    """What can't work for any payload is told to whoever wrote it, with the place."""
    with pytest.raises(InvalidExpression) as raised:
        compile_filter(text)

    assert words in raised.value.message
    assert "invalid_expression" == raised.value.code


@pytest.mark.parametrize("text", [None, 1, b"true", ["true"]])
def test_a_filter_is_text(text):
    """Anything else is refused by its type."""
    with pytest.raises(InvalidExpression, match="a filter is text"):
        compile_filter(text)


def test_a_filter_of_exactly_the_largest_size_compiles():
    """4,096 bytes are allowed."""
    text = "input.x == '" + "a" * (4096 - 13) + "'"

    assert 4096 == len(text)
    assert compile_filter(text).matches({"x": "a" * (4096 - 13)})


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (5, "input == 5"),
        ("x", 'input == "x"'),
        (None, "input == null"),
        ([1, 2], "input[1] == 2"),
        ({}, "input == {}"),
        (True, "input"),
    ],
)
def test_a_payload_may_be_any_json(payload, text):
    """`input` is the whole payload, whatever it is."""
    assert compile_filter(text).matches(payload)


def test_the_same_text_is_compiled_once():
    """Equal texts share a filter; nothing a filter does changes it."""
    first = compile_filter("input.same == 1")

    assert first is compile_filter("input.same == 1")
    assert Verdict(True, None, 4) == first.evaluate({"same": 1}) == first.evaluate({"same": 1})
    assert "Filter('input.same == 1')" == repr(first)


def test_evaluating_changes_nothing_in_the_payload():
    """Lists that are joined or mapped are new ones."""
    payload = {"list": [1, 2]}

    assert compile_filter("(input.list + [3]).map(x, x) == [1, 2, 3]").matches(payload)
    assert {"list": [1, 2]} == payload


def test_text_that_looks_like_a_format_stays_text():
    """Braces, percent signs and attribute names in values and messages are never interpreted."""
    hostile = "{0.__class__} %s %(x)s"
    verdict = compile_filter("int(input.x) == 1").evaluate({"x": hostile})

    assert f"{hostile!r} is not a whole number" == verdict.error
    assert compile_filter('input["{0.__class__}"] == "__globals__"').matches({"{0.__class__}": "__globals__"})


def test_methods_of_python_values_are_out_of_reach():
    """Dotted access finds keys of maps and nothing else."""
    for text in ("input.keys == 1", "input.s.upper == 1", "input.list.append == 1"):
        assert "expression_failed" == compile_filter(text).evaluate(PAYLOAD).code


def test_numbers_beyond_64_bits_compare_exactly():
    """JSON may carry them; nothing is rounded."""
    larger = compile_filter("input.a > input.b")

    assert larger.matches({"a": (1 << 64) + 1, "b": 1 << 64})
    assert not larger.matches({"a": 1 << 64, "b": float(1 << 64)})
