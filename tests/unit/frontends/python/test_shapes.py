"""What is known of a type hint when it is stored, and that it never refuses what could be read as the hint."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import json
import typing as t
import uuid

import msgspec
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Meta, Raw

from holdfast.errors import InvalidRequest, PayloadNotDecodable, PromiseValueInvalid
from holdfast.frontends.python.shapes import shape_of
from holdfast.model.payloads import decode
from holdfast.model.shapes import MAX_SHAPE_BYTES, Array, check_shape, check_value, misfit, stored
from holdfast.model.values import NULL

N = t.TypeVar("N")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Forgiving(enum.Enum):
    A = "a"

    @classmethod
    def _missing_(cls, value: object) -> Forgiving:
        return cls.A


Many = enum.Enum("Many", {f"member_{i}": f"value number {i}" for i in range(1000)})  # type: ignore[misc]
ManyNumbers = enum.Enum("ManyNumbers", {f"member_{i}": i for i in range(1000)})  # type: ignore[misc]


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Item:
    sku: str
    count: int = 1


@dataclasses.dataclass
class Checked:
    amount: int

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise ValueError("less than nothing")


@dataclasses.dataclass
class Order:
    items: list[Item]
    colour: Colour
    note: str | None = None
    tags: set[str] = dataclasses.field(default_factory=set)
    at: dt.datetime | None = None


@dataclasses.dataclass
class Tree:
    value: int
    children: list[Tree] = dataclasses.field(default_factory=list)


class Closed(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    first_name: str
    last_name: str = ""


class Odd(msgspec.Struct):
    name: str = msgspec.field(name="the name, of $it")


class Row(msgspec.Struct, array_like=True):
    a: int
    b: str = ""


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    tricks: list[str] = []


class One(msgspec.Struct, tag=1, tag_field="no"):
    x: int | msgspec.UnsetType = msgspec.UNSET


class Two(msgspec.Struct, tag=2, tag_field="no"):
    x: str


class Box(msgspec.Struct, t.Generic[N]):
    inside: N


class Holder(msgspec.Struct):
    anything: Raw
    foreign: fractions.Fraction | None = None


class Place(t.NamedTuple):
    x: int
    y: float
    name: str = ""


class Wanted(t.TypedDict):
    a: int
    b: t.NotRequired[str]


class Model(pydantic.BaseModel):
    amount: int


class Text(str):
    __slots__ = ()


class Mixed(msgspec.Struct):
    model: Model
    models: list[Model] = []


Small = t.Annotated[int, Meta(ge=0, lt=10)]

HINTS: list[t.Any] = [
    t.Any,
    object,
    None,
    bool,
    int,
    float,
    str,
    bytes,
    bytearray,
    decimal.Decimal,
    uuid.UUID,
    dt.datetime,
    dt.date,
    dt.time,
    dt.timedelta,
    Raw,
    fractions.Fraction,
    Text,
    t.NewType("UserId", int),
    Small,
    t.Annotated[float, Meta(gt=0.5, multiple_of=0.25)],
    t.Annotated[str, Meta(min_length=1, max_length=3)],
    t.Annotated[str, Meta(pattern="^a")],
    t.Annotated[bytes, Meta(max_length=3)],
    t.Annotated[dt.datetime, Meta(tz=True)],
    t.Annotated[dt.time, Meta(tz=False)],
    t.Annotated[list[int], Meta(min_length=1, max_length=2)],
    t.Annotated[set[int], Meta(min_length=2)],
    t.Annotated[dict[str, int], Meta(min_length=1)],
    Colour,
    Level,
    Forgiving,
    Many,
    ManyNumbers,
    dict[ManyNumbers, int],
    Rights,
    t.Literal["a", "b"],
    t.Literal[1, 2, "a"] | None,
    int | None,
    int | str,
    int | float,
    Colour | None,
    list[int] | str | None,
    Item | None,
    Item | int | list[str],
    Cat | Dog,
    Cat | Dog | None,
    Cat,
    One | Two,
    list,
    dict,
    set,
    tuple,
    list[int],
    list[int | None],
    set[Colour],
    frozenset[int],
    tuple[int, ...],
    tuple[int, str],
    tuple[()],
    dict[str, Small],
    dict[int, str],
    dict[Colour, list[int]],
    dict[Level, int],
    dict[uuid.UUID, int],
    t.Sequence[Item],
    t.Mapping[str, Item],
    collections.OrderedDict[str, int],
    collections.deque[int],
    Item,
    Checked,
    Order,
    Tree,
    Closed,
    Odd,
    Row,
    Row | None,
    Box[int],
    Box[list[Item]],
    Box,
    Holder,
    Place,
    list[Place],
    Wanted,
    Model,
    Model | None,
    list[Model],
    Mixed,
    Item | Model,
    "int",
    5,
    t.Annotated[int, Meta(ge=2**70)],
]

GOOD: list[t.Any] = [
    None,
    True,
    0,
    1,
    3,
    7,
    2**70,
    -1,
    1.0,
    1.5,
    0.75,
    "",
    "a",
    "red",
    "1",
    "1/2",
    "YWJj",
    "1.5",
    "00000000-0000-0000-0000-000000000001",
    "2024-01-02T03:04:05Z",
    "2024-01-02T03:04:05",
    "2024-01-02",
    "03:04:05",
    "PT5S",
    [],
    {},
    [1],
    [1, 1],
    [1, 2],
    [1, None],
    [1, "a"],
    [1, 2, "c"],
    [[1, 2.5]],
    ["red", "blue"],
    {"a": 1},
    {"a": 1, "b": "x"},
    {"1": "x"},
    {"1": 2},
    {"red": [1]},
    {"00000000-0000-0000-0000-000000000001": 1},
    {"sku": "s"},
    {"a": {"sku": "s", "count": 2}},
    [{"sku": "s"}],
    {"amount": 5},
    {"amount": -5},
    {"amount": "5"},
    [{"amount": "5"}],
    {"model": {"amount": "5"}, "models": [{"amount": 1}]},
    {"items": [{"sku": "s", "count": 2}], "colour": "red", "tags": ["x", "x"], "at": "2024-01-02T03:04:05Z"},
    {"value": 1, "children": [{"value": 2, "children": [{"value": "x"}]}]},
    {"firstName": "f", "lastName": "l"},
    {"firstName": "f", "more": 1},
    {"the name, of $it": "n"},
    {"type": "cat", "lives": 9},
    {"lives": 9},
    {"type": "dog", "tricks": ["sit"], "more": 1},
    {"no": 1, "x": 1},
    {"no": 2, "x": "x"},
    {"inside": 1},
    {"inside": [{"sku": "s"}]},
    {"anything": [{"deep": 1}], "foreign": None},
    {"anything": {}, "foreign": 5},
]
"""Each is right for some of the hints, and wrong for most."""

LEAVES = st.sampled_from([value for value in GOOD if not isinstance(value, list | dict)]) | st.integers() | st.text()
JSON = st.recursive(
    st.sampled_from(GOOD) | LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spoiled(draw: st.DrawFn) -> t.Any:
    """One of the good values with something in it replaced, missing or added."""
    value = json.loads(json.dumps(draw(st.sampled_from(GOOD))))
    place: t.Any = value
    while isinstance(place, list | dict) and place:
        key = draw(st.sampled_from(list(range(len(place)) if isinstance(place, list) else place)))
        if not (isinstance(place[key], list | dict) and place[key] and draw(st.booleans())):
            change = draw(st.sampled_from(["replace", "drop", "add"]))
            if change == "drop":
                del place[key]
            elif change == "replace":
                place[key] = draw(JSON)
            elif isinstance(place, list):
                place.append(draw(JSON))
            else:
                place[draw(st.text(max_size=3))] = draw(JSON)
            return value
        place = place[key]
    return draw(JSON)


def can_be_read(value: Raw, hint: t.Any) -> bool:
    try:
        decode(value, hint, field="value")
    except PayloadNotDecodable:
        return False
    return True


def as_json(value: t.Any) -> Raw:
    return Raw(json.dumps(value).encode())


# --- never too strict ---


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(JSON | spoiled(), min_size=20, max_size=20))
def test_what_is_refused_could_not_have_been_read(values):
    """Every hint against every value."""
    for given_value in values:
        value = as_json(given_value)
        for hint in HINTS:
            wrong = misfit(shape_of(hint), value)
            assert wrong is None or not can_be_read(value, hint), (hint, bytes(value), wrong)


def test_what_is_right_for_a_hint_is_accepted():
    """The same for values that were chosen by hand; each of them is right for something."""
    for given_value in GOOD:
        value = as_json(given_value)
        fitting = [hint for hint in HINTS if can_be_read(value, hint)]
        assert [] == [hint for hint in fitting if misfit(shape_of(hint), value)], given_value


@pytest.mark.parametrize("number", ["1e400", "-1e999", "1" * 4_000])
def test_what_is_not_read_is_not_judged(number):
    """A number that is too large for Python is fine where it is passed over."""
    raw = Raw(f'{{"anything": {number}, "more": {number}}}'.encode())

    assert can_be_read(raw, Holder)
    assert misfit(shape_of(Holder), raw) is None


def test_a_value_that_is_nested_too_deep_to_be_looked_at_is_not_judged():
    deep = Raw(b"[" * 50_000 + b"]" * 50_000)

    assert misfit(shape_of(list[list[int]]), Raw(b"[[[]]]")) is not None
    assert misfit(shape_of(list), deep) is None


# --- strict where it is certain ---


@pytest.mark.parametrize(
    ("hint", "value", "path"),
    [
        (int, "x", ""),
        (int, 1.5, ""),
        (bool, 1, ""),
        (str, None, ""),
        (None, 0, ""),
        (Small, 10, ""),
        (dt.datetime, "yesterday", ""),
        (t.Annotated[dt.datetime, Meta(tz=True)], "2024-01-02T03:04:05", ""),
        (uuid.UUID, "x", ""),
        (decimal.Decimal, "many", ""),
        (bytes, "?", ""),
        (Colour, "green", ""),
        (Level, 2, ""),
        (t.Literal["a", 1], "b", ""),
        (int | None, "x", ""),
        (list[int], [1, "x"], "[1]"),
        (tuple[int, str], [1], ""),
        (dict[str, Small], {"a": 11}, "[...]"),
        (Item, {}, ""),
        (Item, {"sku": 1}, ".sku"),
        (Item, "an item", ""),
        (Order, {"items": [{"sku": "s"}, {"sku": "s", "count": "x"}], "colour": "red"}, ".items[1].count"),
        (Order, {"items": [], "colour": "green"}, ".colour"),
        (Order, {"items": [], "colour": "red", "at": "now"}, ".at"),
        (Tree, {"value": 1, "children": {}}, ".children"),
        (Closed, {"firstName": "f", "first_name": "f"}, ""),
        (Odd, {"the name, of $it": 1}, ".the name, of $it"),
        (Row, {}, ""),
        (Cat | Dog, {"type": "cow"}, ".type"),
        (Cat | Dog, {"type": "cat", "lives": "nine"}, ".lives"),
        (One | Two, {"no": 2, "x": 1}, ".x"),
        (Box[int], {"inside": "x"}, ".inside"),
        (Holder, {}, ""),
        (Place, [1], ""),
        (Place, [1, 2, "n", 4], ""),
        (Wanted, {"b": "x"}, ""),
        (list[Model], {}, ""),
        (Mixed, {"models": []}, ""),
    ],
)
def test_what_can_be_known_is_refused_with_its_place(hint, value, path):
    raw = as_json(value)
    wrong = misfit(shape_of(hint), raw)

    assert wrong is not None
    assert path == wrong.path
    with pytest.raises(PayloadNotDecodable) as unread:
        decode(raw, hint, field="value")
    assert wrong.reason == unread.value.details["reason"], "in the words of whoever would have read it"


@pytest.mark.parametrize("hint", [t.Any, object, Raw, Model, Model | None, Item | Model, Forgiving, Text, "int", 5])
def test_what_only_the_type_can_judge_has_no_shape(hint):
    assert NULL == shape_of(hint) or b"null" == bytes(shape_of(hint))


# --- how large ---


def wide(levels: int) -> t.Any:
    """A type of so many levels, with ten fields on each."""
    kind: t.Any = int
    for level in range(levels):
        kind = msgspec.defstruct(f"Level{level}", [(f"field_number_{i}", kind) for i in range(10)])
    return kind


def test_a_large_type_is_known_as_deep_as_there_is_room():
    shape = shape_of(wide(12))

    assert len(bytes(shape)) <= MAX_SHAPE_BYTES
    assert misfit(shape, Raw(b"{}")) is not None
    flat: dict[str, t.Any] = {f"field_number_{i}": {} for i in range(10)}
    assert misfit(shape, as_json(flat)) is not None
    assert misfit(shape, as_json({name: {f"field_number_{i}": 1 for i in range(10)} for name in flat})) is None


def test_of_too_many_values_the_kind_is_known():
    literals = t.Literal[(*(f"value number {i}" for i in range(1000)), 7)]  # type: ignore[valid-type]

    assert '{"is":"array","of":"str"}' == bytes(shape_of(list[Many])).decode()
    assert '{"is":"map","key":"int","of":"bool"}' == bytes(shape_of(dict[ManyNumbers, bool])).decode()
    assert {"str", "int"} == set(json.loads(bytes(shape_of(literals)))["of"])


def test_a_type_too_large_on_its_first_level_has_no_shape():
    assert NULL == shape_of(msgspec.defstruct("Wide", [(f"field_number_{i}", int) for i in range(1000)]))


# --- what is stored ---


@pytest.mark.parametrize(
    "shape",
    [b'"number"', b'{"is":"array"}', b'{"is":"cube","of":"int"}', b'{"is":"either","of":[]}', b"7", b"["],
)
def test_a_shape_that_nothing_can_be_checked_against_is_refused(shape):
    """By whoever takes it in; one that is stored already, by something newer, accepts everything."""
    with pytest.raises(InvalidRequest, match="shape: ") as refused:
        check_shape(Raw(shape), "shape")

    assert "shape" == refused.value.field
    assert misfit(Raw(shape), Raw(b"1")) is None


def test_anything_or_something_is_anything():
    shape = Raw(b'{"is":"array","of":{"is":"either","of":["int",{"is":"either","of":["str","any"]}]}}')
    check_shape(shape, "shape")

    assert misfit(shape, Raw(b"[null, {}, 1e400]")) is None
    assert misfit(shape, Raw(b"{}")) is not None


def test_a_shape_is_limited():
    nested: t.Any = "int"
    for _ in range(300):
        nested = Array(of=nested)
    with pytest.raises(ValueError, match="4096"):
        stored(nested)
    with pytest.raises(InvalidRequest, match="4096"):
        check_shape(Raw(b'"' + b"x" * 5000 + b'"'), "shape")


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_every_shape_can_be_taken_in(hint):
    check_shape(shape_of(hint), "shape")


def test_the_stored_form():
    """These rows are in users' databases for ever."""
    forms = {
        int: '"int"',
        Small: '{"is":"bounded","of":"int","ge":0,"lt":10}',
        Colour | None: '{"is":"either","of":[{"is":"one_of","of":["red","blue"]},"null"]}',
        dict[str, list[int]]: '{"is":"map","key":"str","of":{"is":"array","of":"int"}}',
        Place: '{"is":"tuple","of":["int","float","str"],"optional":1}',
        Cat: '{"is":"object","fields":{"lives":"int"},"tag_field":"type","tag":"cat"}',
        Item: '{"is":"object","fields":{"sku":"str"},"optional":{"count":"int"}}',
        Closed: '{"is":"object","fields":{"firstName":"str"},"optional":{"lastName":"str"},"closed":true}',
    }
    for hint, form in forms.items():
        assert form == bytes(shape_of(hint)).decode()


def test_a_refusal_names_the_promise_the_place_and_the_cause():
    with pytest.raises(PromiseValueInvalid) as refused:
        check_value("e:payment", shape_of(Item), as_json({"sku": 5}))

    assert "e:payment" in str(refused.value)
    assert "value.sku: Expected `str`, got `int`" in str(refused.value)
    assert {"promise_id": "e:payment", "field": "value.sku", "reason": "Expected `str`, got `int`"} == (
        refused.value.details
    )
