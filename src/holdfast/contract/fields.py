"""Kinds of fields: what a value may be, said once.

A kind is an annotated type. Its JSON schema goes into the OpenAPI document, its check is run by the engine before a
request touches anything, wherever the request comes from. So every caller reads the same words about the same field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import Meta, Raw

from holdfast.config import Limits
from holdfast.errors import InvalidDuration, InvalidRequest, PayloadTooLarge
from holdfast.model.names import check_name, check_priority, check_text
from holdfast.model.values import NULL, TEN_YEARS_S

R = TypeVar("R")

LARGEST: Final = 2**62
FOREVER: Final = math.inf
"""As a `Wait`: as long as it takes. Only for callers in Python; an HTTP client asks again and again."""
LONGEST_REASON: Final = 1_000
LONGEST_WAIT_S: Final = 30.0
NO_CONTROL: Final = r"^[^\u0000-\u001f\u007f]*$"
NO_NUL: Final = r"^[^\u0000]*$"


class Check(NamedTuple):
    """`run` refuses a value by raising. `name` is what errors call the field, if not its own name."""

    run: Callable[[Any, str, Limits], None]
    name: str | None = None


def null() -> Raw:
    """The default of a payload. A function, because a JSON schema can't show a raw value."""
    return NULL


def _name(value: Any, field: str, _: Limits) -> None:
    check_name(value, field)


def _text(value: Any, field: str, _: Limits) -> None:
    check_text(value, field)


def _reason(value: Any, field: str, _: Limits) -> None:
    check_text(value, field)
    if len(value) > LONGEST_REASON:
        raise InvalidRequest(f"{field} must have at most {LONGEST_REASON} characters", field=field)


def check_duration(value: Any, field: str, _: Limits) -> None:
    if not 0 < value <= TEN_YEARS_S:
        raise InvalidDuration(f"{field} must be more than 0 and at most ten years, not {value}", field=field)


def _number(value: Any, field: str, _: Limits) -> None:
    if type(value) is not int or not 0 < value < LARGEST:
        raise InvalidRequest(f"{field} must be a positive integer, not {value!r:.50}", field=field)


def _limit(value: Any, field: str, limits: Limits) -> None:
    if type(value) is not int or not 1 <= value <= limits.page_size:
        raise InvalidRequest(f"{field} must lie between 1 and {limits.page_size}", field=field)


def _priority(value: Any, _: str, __: Limits) -> None:
    check_priority(value)


def _tags(value: Mapping[str, str], field: str, _: Limits) -> None:
    for key, text in value.items():
        check_text(key, field)
        check_text(text, field)


def check_payload(value: Raw, field: str, limits: Limits) -> None:
    size = len(memoryview(value))
    if size > limits.payload_bytes:
        raise PayloadTooLarge(
            f"{field} has {size} bytes, more than the {limits.payload_bytes} allowed: store it elsewhere and pass a "
            "reference",
            field=field,
            size=size,
            limit=limits.payload_bytes,
        )


def named(name: str) -> Check:
    """The check of a name whose field has another name outside."""
    return Check(_name, name)


NAME_SCHEMA: Final = {"minLength": 1, "maxLength": 255, "pattern": NO_CONTROL}
SECONDS: Final = Meta(extra_json_schema={"exclusiveMinimum": 0, "maximum": TEN_YEARS_S})
_PAGE: Final = Meta(gt=-LARGEST, lt=LARGEST, extra_json_schema={"minimum": 1, "maximum": 1000})

Name = Annotated[str, Meta(extra_json_schema=NAME_SCHEMA), Check(_name)]
"""An id or a name: 1 to 255 bytes without control characters."""
Text = Annotated[str, Meta(extra_json_schema={"pattern": NO_NUL}), Check(_text)]
Reason = Annotated[str, Meta(extra_json_schema={"maxLength": LONGEST_REASON, "pattern": NO_NUL}), Check(_reason)]
"""For people; kept in the audit log."""
Key = Annotated[str, Meta(extra_json_schema=NAME_SCHEMA), Check(_name, "idempotency_key")]
Seconds = Annotated[float, SECONDS, Check(check_duration)]
KeyTtl = Annotated[float, SECONDS, Check(check_duration, "idempotency_key_ttl")]
Number = Annotated[int, Meta(gt=-LARGEST, lt=LARGEST, extra_json_schema={"minimum": 1}), Check(_number)]
EventNumber = Annotated[int, Meta(gt=-LARGEST, lt=LARGEST, extra_json_schema={"minimum": 1})]
"""The number of an event. Which ones will do is told by the history."""
After = Annotated[int, Meta(ge=0, lt=LARGEST)]
"""The number after which to continue; 0 for the beginning."""
Limit = Annotated[int, _PAGE, Check(_limit)]
Wait = Annotated[float, Meta(ge=0, le=LONGEST_WAIT_S)]
"""How long to wait for something that has not happened yet, in seconds."""
Priority = Annotated[int, Meta(extra_json_schema={"minimum": -(2**31), "maximum": 2**31 - 1}), Check(_priority)]
Instant = Annotated[datetime, Meta(tz=True)]
Tags = Annotated[dict[str, str], Check(_tags, "metadata")]
Payload = Annotated[Raw, Check(check_payload)]


class FieldCheck(NamedTuple):
    field: str
    name: str
    run: Callable[[Any, str, Limits], None]
    may_lack: bool


_CHECKS: Final[dict[type[Any], tuple[FieldCheck, ...]]] = {}


def check(request: msgspec.Struct, limits: Limits) -> None:
    """Refuse a request whose fields are not what their kinds say. None and unset ones pass where the type has them."""
    checks = _CHECKS.get(type(request))
    if checks is None:
        checks = _CHECKS[type(request)] = tuple(_checks_of(type(request)))
    for field, name, run, may_lack in checks:
        value = getattr(request, field)
        if not may_lack or (value is not None and value is not msgspec.UNSET):
            run(value, name, limits)


def large_payloads(request: msgspec.Struct, limits: Limits) -> list[tuple[str, int]]:
    """Names and sizes of payloads that are allowed, but better stored elsewhere."""
    found = []
    for field, name, run, _ in _CHECKS.get(type(request), ()):
        value = getattr(request, field) if run is check_payload else None
        if isinstance(value, Raw) and len(memoryview(value)) > limits.payload_warning_bytes:
            found.append((name, len(memoryview(value))))
    return found


def _checks_of(kind: type[msgspec.Struct]) -> list[FieldCheck]:
    found = []
    for field in msgspec.structs.fields(kind):
        for one in checks_in(field.type):
            name = one.name or field.name.removesuffix("_s")
            found.append(FieldCheck(field.name, name, one.run, _may_lack(field.type)))
    return found


def _may_lack(annotation: Any) -> bool:
    return not {type(None), msgspec.UnsetType}.isdisjoint(get_args(annotation))


def checks_in(annotation: Any) -> list[Check]:
    """The checks of an annotated type, also inside `X | None`; what is inside a container is not looked at."""
    own = [one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, Check)]
    if own or getattr(annotation, "__origin__", None) in {tuple, list, dict}:
        return own
    return [one for part in get_args(annotation) for one in checks_in(part)]
