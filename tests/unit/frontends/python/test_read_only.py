"""The picture of a workflow's data by which a query that changed something is found out."""

import asyncio
import random
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from enum import Enum

import msgspec
import pytest
from pydantic import BaseModel

from holdfast.frontends.python import read_only
from holdfast.frontends.python.read_only import snapshot_of


class Colour(Enum):
    RED = 1


@dataclass
class Plain:
    items: list[int] = field(default_factory=lambda: [1, 2])


@dataclass(slots=True)
class Slotted:
    __hidden: int = 1
    name: str = "a"

    def change(self) -> None:
        self.__hidden = 2


class Struct(msgspec.Struct):
    value: list[int] = []


class Model(BaseModel):
    value: dict[str, int] = {}


class Unset:
    __slots__ = ("later",)


class Stubborn:
    """Equal to everything, and without attributes for those who ask politely."""

    def __init__(self) -> None:
        self.inner = [1]

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __getattr__(self, name: str) -> object:
        raise RuntimeError("nobody may look")


CHANGES = [
    ([1, [2]], lambda it: it[1].append(3)),
    ([1, True], lambda it: it.__setitem__(1, 1)),
    ({"a": {"b": 1}}, lambda it: it["a"].update(b=2)),
    ({"a": 1}, lambda it: it.update({"a": 1.0})),
    ({1, 2}, lambda it: it.add(3)),
    (([1],), lambda it: it[0].clear()),
    (deque([1]), lambda it: it.append(2)),
    (Counter("aab"), lambda it: it.update("a")),
    (defaultdict(list), lambda it: it["new"]),
    (OrderedDict(a=1, b=2), lambda it: it.move_to_end("a")),
    (bytearray(b"ab"), lambda it: it.__setitem__(0, 99)),
    (array("i", [1]), lambda it: it.append(2)),
    (Plain(), lambda it: it.items.append(3)),
    (Plain(), lambda it: setattr(it, "items", [1, 2])),
    (Plain(), lambda it: setattr(it, "other", 1)),
    (Slotted(), lambda it: setattr(it, "name", "b")),
    (Slotted(), lambda it: it.change()),
    (Unset(), lambda it: setattr(it, "later", 1)),
    (Struct([1]), lambda it: it.value.append(2)),
    (Model(value={"a": 1}), lambda it: it.value.update(a=2)),
    (Stubborn(), lambda it: it.__dict__["inner"].append(2)),
    (random.Random(1), lambda it: it.random()),
    (asyncio.Event(), lambda it: it.set()),
]


@pytest.mark.parametrize(("thing", "change"), CHANGES, ids=[type(thing).__name__ for thing, _ in CHANGES])
def test_a_change_is_seen(thing, change):
    """Wherever it lies; and without one, two pictures are the same."""
    holder = {"held": [thing]}
    before = snapshot_of(holder)
    assert before == snapshot_of(holder)
    change(thing)
    assert before != snapshot_of(holder)


def test_things_that_contain_themselves():
    """The walk ends."""
    loop: list[object] = [1]
    loop.append(loop)
    before = snapshot_of(loop)
    assert before == snapshot_of(loop)
    loop.append(2)
    assert before != snapshot_of(loop)


def test_an_equal_thing_in_place_of_another_is_a_change():
    """Somebody else may hold the old one."""
    holder = [[1]]
    before = snapshot_of(holder)
    holder[0] = [1]
    assert before != snapshot_of(holder)


def test_not_a_number_equals_itself_here():
    """Looking changes nothing, whatever its idea of equality."""
    holder = [float("nan"), Colour.RED, None, 1j]
    assert snapshot_of(holder) == snapshot_of(holder)


def test_the_walk_is_bounded(monkeypatch):
    """What lies beyond is not compared; it takes no longer for that."""
    monkeypatch.setattr(read_only, "MAX_PARTS", 100)
    many = [[number] for number in range(1_000)]
    before = snapshot_of(many)
    assert len(before) <= 101
    many[900].append(1)
    assert before == snapshot_of(many)
    many[0].append(1)
    assert before != snapshot_of(many)


def test_depth_is_no_problem():
    """A list in a list in a list, ten thousand deep."""
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    assert snapshot_of(deep) == snapshot_of(deep)
