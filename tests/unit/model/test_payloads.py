"""What can be stored, what comes back, and what the refusals say."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import math
import subprocess
import sys
import typing as t
import uuid

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from holdfast.config import Limits
from holdfast.errors import PayloadNotDecodable, PayloadNotEncodable, PayloadTooLarge
from holdfast.model import payloads
from holdfast.model.payloads import decode, decode_args, encode, encode_args
from holdfast.model.values import NULL


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class UserId(str):
    __slots__ = ()


class Cents(int):
    pass


@dataclasses.dataclass
class Line:
    sku: str
    count: int = 1
    note: t.Any = None
    tag: t.ClassVar[t.Any] = print


@dataclasses.dataclass
class Order:
    lines: list[Line]
    callback: t.Any = None


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


class Pair(t.NamedTuple):
    a: int
    b: str


class Address(pydantic.BaseModel):
    city: str
    since: dt.date | None = None
    rating: float = 0.0
    extra: t.Any = None


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    at: dt.datetime
    ident: uuid.UUID = pydantic.Field(alias="id")

    @pydantic.computed_field
    def year(self) -> int:
        return self.at.year


class Company(pydantic.BaseModel):
    name: str


@dataclasses.dataclass
class Visit:
    address: Address
    others: list[Address]


class Arbitrary:
    pass


UTC = dt.UTC
STRICT = Strict(at=dt.datetime(2024, 1, 2, tzinfo=UTC), id=uuid.UUID(int=7))
OSLO = Address(city="Oslo", since=dt.date(2020, 1, 1))


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (None, t.Any),
        (True, bool),
        (2**64 - 1, int),
        (-(2**63), int),
        (2**200, int),
        (1.5, float),
        ("ü€😀\0", str),
        ([1, "a", None, {"k": [2.5]}], t.Any),
        ({"a": [1, 2]}, dict[str, list[int]]),
        ({1: "a"}, dict[int, str]),
        ({uuid.UUID(int=5): 1}, dict[uuid.UUID, int]),
        ((1, "a"), tuple[int, str]),
        ({1, 2}, set[int]),
        (frozenset({"a"}), frozenset[str]),
        (b"\x00\xff", bytes),
        (dt.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=UTC), dt.datetime),
        (dt.date(2024, 5, 6), dt.date),
        (dt.timedelta(days=-1, microseconds=5), dt.timedelta),
        (uuid.UUID(int=9), uuid.UUID),
        (decimal.Decimal("1.10"), decimal.Decimal),
        (Colour.RED, Colour),
        (Level.HIGH, Level),
        (UserId("u1"), UserId),
        ([Cents(5)], list[Cents]),
        (Pair(1, "b"), Pair),
        (Order([Line("a"), Line("b", 2, [1])]), Order),
        (Point(1.0), Point),
        (Line("x"), Line | None),
        (OSLO, Address),
        (OSLO, Address | None),
        ([OSLO], list[Address]),
        ({"home": OSLO}, dict[str, Address]),
        (Visit(OSLO, [OSLO]), Visit),
        (STRICT, Strict),
        ([STRICT], list[Strict]),
        (Company(name="x"), Address | Company),
        ([Company(name="x"), 3], list[Company | int]),
        ({"any": 1}, object),
    ],
    ids=repr,
)
def test_a_value_comes_back_as_it_was(value, hint):
    """A value read with its own type equals the value that was stored."""
    back = decode(encode(value, field="input"), hint, field="input")

    assert (back, type(back)) == (value, type(value))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    )
)
def test_every_plain_value_comes_back(value):
    """Any nesting of plain values survives without a type hint."""
    assert decode(encode(value, field="x"), field="x") == value


@given(st.recursive(st.floats() | st.none(), lambda inner: st.lists(inner, max_size=4)))
def test_no_float_is_changed_silently(value):
    """A tree of floats either comes back equal or is refused because one is not finite."""
    try:
        raw = encode(value, field="x")
    except PayloadNotEncodable:
        assert "nan" in repr(value) or "inf" in repr(value)
    else:
        assert decode(raw, field="x") == value


def test_none_is_the_shared_null():
    """None costs no new object."""
    assert encode(None, field="x") is NULL


def test_a_raw_payload_is_taken_as_it_is():
    """What already has its durable form is not encoded again."""
    assert bytes(encode(Raw(b'{"a": 1}'), field="x")) == b'{"a": 1}'


@dataclasses.dataclass
class Loop:
    me: t.Any = None


def itself() -> t.Any:
    loop = Loop()
    loop.me = {"again": [loop]}
    return loop


def deep(levels: int) -> list[t.Any]:
    value: list[t.Any] = []
    for _ in range(levels):
        value = [value]
    return value


async def never_awaited() -> None: ...


@pytest.mark.parametrize(
    ("value", "path", "says"),
    [
        ({"items": [1, 2, Order([], callback=print)]}, "input.items[2].callback", "a function can't be stored"),
        ({"items": [lambda: 0]}, "input.items[0]", "a function can't be stored"),
        (Order([Line("a"), Line("b", note=Arbitrary())]), "input.lines[1].note", "test_payloads.Arbitrary can't be"),
        ({"a b": {3: Arbitrary}}, "input['a b'][3]", "a class"),
        ([Point(1.0, t.cast(float, {1j}))], "input[0].y[0]", "type complex can't be stored"),
        (float("nan"), "input", "nan has no form in JSON"),
        ({"a": (1.0, float("-inf"))}, "input.a[1]", "-inf has no form in JSON"),
        ([None, 2**70, float("inf")], "input[2]", "inf has no form in JSON"),
        (Line("a", note=float("nan")), "input.note", "nan has no form in JSON"),
        (Address(city="x", rating=float("nan")), "input.rating", "nan has no form in JSON"),
        ({"m": [Address(city="x", extra={"k": float("inf")})]}, "input.m[0].extra.k", "inf has no form in JSON"),
        ([Address(city="x", extra=print)], "input[0]", "Unable to serialize unknown type"),
        ({"a": {(1, 2): 3}}, "input.a[(1, 2)]", "JSON can't carry a key of type tuple"),
        ({None: 3}, "input[None]", "key of type NoneType"),
        ({True: 3}, "input[True]", "key of type bool"),
        (["a", "\ud800"], "input[1]", "lone surrogate"),
        ({"\udfff": 1}, "input['\\udfff']", "lone surrogate"),
        ([10**5000], "input[0]", "4300 digits"),
        (itself(), "input.me.again[0]", "contains itself"),
    ],
)
def test_a_refusal_names_the_culprit(value, path, says):
    """What can't be stored is refused with its path in `field` and in the message, and with the reason."""
    with pytest.raises(PayloadNotEncodable) as caught:
        encode(value, field="input")

    assert caught.value.field == path
    assert caught.value.message.startswith(f"{path}: ")
    assert says in caught.value.message


def test_a_forgotten_await_is_pointed_out():
    """A coroutine in a value is refused with the likely reason."""
    coroutine = never_awaited()
    with pytest.raises(PayloadNotEncodable, match="is an `await` missing"):
        encode([coroutine], field="x")
    coroutine.close()


def test_too_deep_nesting_is_refused_not_a_recursion_error():
    """A value too deep for the encoder is refused, with a path that stays readable."""
    with pytest.raises(PayloadNotEncodable, match="nested deeper") as caught:
        encode(deep(100_000), field="input")

    assert len(caught.value.field) < 300


def test_the_same_part_twice_is_no_cycle():
    """A part that occurs twice side by side is not mistaken for a cycle when something else is wrong."""
    shared = [1]
    with pytest.raises(PayloadNotEncodable) as caught:
        encode([shared, shared, print], field="x")

    assert caught.value.field == "x[2]"


def test_a_model_that_writes_nan_as_text_may_hold_it():
    """A pydantic model configured to write NaN as text round-trips it, even beside a None."""

    class Reading(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(ser_json_inf_nan="strings")
        value: float
        note: str | None = None

    back = decode(encode(Reading(value=float("nan")), field="x"), Reading, field="x")

    assert math.isnan(back.value)


def test_a_model_that_writes_bare_nan_is_refused():
    """A pydantic model configured to write NaN bare would make invalid JSON and is refused."""

    class Reading(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(ser_json_inf_nan="constants")
        value: float

    with pytest.raises(PayloadNotEncodable):
        encode([Reading(value=float("nan"))], field="x")


def test_a_payload_above_the_limit_is_refused_with_both_sizes():
    """One byte too many is refused with field, size and limit; the limit itself is fine."""
    assert len(bytes(encode("x" * 8, field="input", limit=10))) == 10
    with pytest.raises(PayloadTooLarge) as caught:
        encode("x" * 9, field="input", limit=10)

    assert caught.value.details == {"field": "input", "size": 11, "limit": 10}


def test_the_default_limit_is_the_configured_one():
    """Codec and configuration state the same limit."""
    assert Limits().payload_bytes == payloads.DEFAULT_LIMIT_BYTES


@pytest.mark.parametrize(
    ("raw", "hint", "path", "says"),
    [
        (b'{"lines":[{"sku":5}]}', Order, "result.lines[0].sku", "Expected `str`, got `int`"),
        (b"{}", Order, "result", "missing required field `lines`"),
        (b'[{"city":1}]', list[Address], "result[0]", "Input should be a valid string"),
        (b'{"city":1}', Address, "result", "Input should be a valid string"),
        (b"1", Arbitrary, "result", "test_payloads.Arbitrary"),
        (b"[1]", list[Arbitrary], "result[0]", "test_payloads.Arbitrary"),
        (b"1", "Missing", "result", "Missing"),
        (b"1", int | Arbitrary, "result", "Arbitrary"),
        (b"[" * 100_000, t.Any, "result", "nested too deep"),
        (b"[" * 100_000, Address, "result", "recursion limit"),
        (b"", t.Any, "result", "truncated"),
        (b"1 2", t.Any, "result", "trailing"),
        (b"NaN", t.Any, "result", "malformed"),
        (b"1e400", t.Any, "result", "out of range"),
        (b'"\xff"', str, "result", "invalid start byte"),
        (b'"\\ud800"', str, "result", ""),
        (b"1" * 5000, int, "result", "out of range"),
    ],
)
def test_what_does_not_fit_names_field_and_type(raw, hint, path, says):
    """Stored bytes that do not fit are refused with the path, the type asked for and what was wrong."""
    with pytest.raises(PayloadNotDecodable) as caught:
        decode(raw, hint, field="result")

    assert caught.value.field == path
    assert caught.value.message.startswith(f"{path}: ")
    assert says in caught.value.message
    assert caught.value.__cause__ is not None


@dataclasses.dataclass
class Explosive:
    x: int

    def __post_init__(self) -> None:
        raise KeyError("boom")


def test_whatever_a_users_class_raises_is_a_payload_error():
    """An exception of any type from a user's constructor is reported as not decodable."""
    with pytest.raises(PayloadNotDecodable, match="KeyError: 'boom'"):
        decode(b'{"x":1}', Explosive, field="x")


def test_an_unhashable_hint_works():
    """A hint that can't be a cache key is used all the same."""
    assert decode(b"3", t.Annotated[int, ["unhashable"]], field="x") == 3


def test_arguments_come_back_each_as_its_type():
    """Positional arguments are an array, read with the type at each place."""
    raw = encode_args(("a", Line("x"), OSLO, b"z"))

    assert decode_args(raw, [str, Line, Address, bytes]) == ["a", Line("x"), OSLO, b"z"]


def test_arguments_left_to_their_defaults_are_left_out():
    """Fewer arguments than parameters are read as they are."""
    assert decode_args(encode_args(()), [int, int]) == []
    assert decode_args(encode_args((1,)), [int, int]) == [1]


def test_more_arguments_than_parameters_are_refused():
    """A recorded call that no longer fits its task says so, with both numbers."""
    with pytest.raises(PayloadNotDecodable) as caught:
        decode_args(encode_args((1, 2)), [int])

    assert (caught.value.details["given"], caught.value.details["taken"]) == (2, 1)


def test_argument_errors_name_the_argument():
    """Paths of arguments begin with args[n], in both directions."""
    with pytest.raises(PayloadNotEncodable) as refused:
        encode_args(({"x": print},))
    with pytest.raises(PayloadNotDecodable) as unread:
        decode_args(b'[1,{"sku":2}]', [int, Line])
    with pytest.raises(PayloadNotDecodable) as no_array:
        decode_args(b"{}", [int])

    assert [e.value.field for e in (refused, unread, no_array)] == ["args[0].x", "args[1].sku", "args"]


def test_pydantic_is_not_imported():
    """A program without pydantic never loads it."""
    program = (
        "import sys; from holdfast.model.payloads import encode, decode\n"
        "decode(encode([{'a': None}], field='x'), list, field='x')\n"
        "sys.exit('pydantic' in sys.modules or 'asyncio' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
