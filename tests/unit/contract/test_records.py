"""Records with plain values."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, UnsetType, field

from holdfast.contract.operation import Record
from holdfast.contract.records import plain, raw


class Inner(Record, frozen=True, kw_only=True):
    value: Any = None
    cause: Inner | None = None


class Outer(Record, frozen=True, kw_only=True):
    name: str = ""
    inner: Inner | None = None
    inners: tuple[Inner, ...] = ()
    args: tuple[Any, ...] | None = ()
    state: dict[str, Any] = field(default_factory=dict)
    result: Raw = Raw(b"null")
    seen: Any | UnsetType = UNSET


def test_raw_json_is_decoded_where_anything_may_be():
    """In the record, in those inside it, in tuples and in dicts."""
    inner = Inner(value=Raw(b'{"a":[1]}'), cause=Inner(value=Raw(b"2")))
    made = plain(Outer(inner=inner, inners=(inner,), args=(Raw(b"1"), Raw(b"null")), state={"k": Raw(b'"v"')}))

    read = Inner(value={"a": [1]}, cause=Inner(value=2))
    assert Outer(inner=read, inners=(read,), args=(1, None), state={"k": "v"}) == made


def test_raw_fields_stay_raw():
    assert Raw(b"[1]") == plain(Outer(result=Raw(b"[1]"))).result


def test_plain_values_stay_as_they_are():
    """What came as JSON over a network was decoded there."""
    given = Outer(inner=Inner(value={"a": {"b": 1}}), state={"k": {"l": [1]}}, args=None, seen=None)

    assert given == plain(given)


def test_a_payload_is_json_again():
    assert [Raw(b"[1]"), Raw(b"[1]"), Raw(b"null")] == [raw(Raw(b"[1]")), raw([1]), raw(None)]
