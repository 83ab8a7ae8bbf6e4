"""JSON from strangers: read once, whole, or refused with the reason.

Refused are: what is not UTF-8 or not one JSON document, a key twice in one object, NaN and numbers beyond the range of
a float, NUL and lone surrogates in text, too much depth, too many parts. The rest is msgspec's work: known fields of
the right type.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Final, NoReturn, TypeVar, get_args, get_origin

import msgspec

from holdfast.config import ServerConfig
from holdfast.errors import InvalidRequest, MalformedBody

T = TypeVar("T", bound=msgspec.Struct)

LONGEST_NUMBER: Final = 4_000
_TEXTS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_PLACE: Final = re.compile(r"^(?P<reason>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN: Final = re.compile(r"unknown field `(?P<name>[^`]*)`")


def read_document(data: bytes, into: type[T], config: ServerConfig) -> T:
    """The body of a request as the struct its operation takes."""
    check_document(data, config)
    try:
        body = msgspec.json.decode(data, type=into)
        if b"\\u0000" in data:
            _refuse_nul(body)
        return body
    except msgspec.ValidationError as error:
        raise refused(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise MalformedBody(f"the body is not JSON: {error}", field="body") from None


def read_query(pairs: list[tuple[str, str]], into: type[T]) -> T:
    """The query of a request. A field that takes several values may be there several times."""
    several = _several(into)
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in several:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise MalformedBody(f"{name} is there twice", field=name)
        else:
            given[name] = value
    try:
        return msgspec.convert(given, into, strict=False)
    except msgspec.ValidationError as error:
        raise refused(error) from None


_SEVERAL: dict[type, frozenset[str]] = {}


def _several(into: type[msgspec.Struct]) -> frozenset[str]:
    if into not in _SEVERAL:
        fields = msgspec.structs.fields(into)
        _SEVERAL[into] = frozenset(field.encode_name for field in fields if _takes_several(field.type))
    return _SEVERAL[into]


def _takes_several(annotation: Any) -> bool:
    plain = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    return get_origin(plain) is tuple


def refused(error: msgspec.ValidationError) -> InvalidRequest:
    found = _PLACE.match(str(error))
    assert found is not None, "it matches everything"
    reason, path = found["reason"], (found["path"] or "").lstrip(".")
    unknown = _UNKNOWN.search(reason)
    if unknown is not None:
        path = f"{path}.{unknown['name']}" if path else unknown["name"]
        return MalformedBody(f"there is no field {path!r} here", field=path)
    return InvalidRequest(f"{path or 'the request'}: {reason}", field=path or "body")


def check_document(data: bytes, config: ServerConfig) -> None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedBody(f"the body is not UTF-8: {error.reason} at byte {error.start}", field="body") from None
    _check_size(data, config)
    if b"\\u" in data:
        _check_escapes(data, text)
    try:
        _CHECKS.decode(text)
    except RecursionError:
        raise MalformedBody("the body is nested too deep", field="body") from None
    except ValueError as error:
        raise MalformedBody(f"the body is not one JSON document: {error}", field="body") from None


def _check_size(data: bytes, config: ServerConfig) -> None:
    opened = data.count(b"{") + data.count(b"[")
    if opened <= config.document_depth and opened + data.count(b",") <= config.document_nodes:
        return
    bare = _TEXTS.sub(b"", data)
    nodes = bare.count(b"{") + bare.count(b"[") + bare.count(b",")
    if nodes > config.document_nodes:
        raise MalformedBody(
            f"the body has more than {config.document_nodes} parts: store it elsewhere and pass a reference",
            field="body",
        )
    depth = 0
    for bracket in re.findall(rb"[\[\]{}]", bare):
        depth += 1 if bracket in b"[{" else -1
        if depth > config.document_depth:
            raise MalformedBody(
                f"the body is nested deeper than {config.document_depth} levels: store it flat", field="body"
            )


def _check_escapes(data: bytes, text: str) -> None:
    if _SURROGATE.search(data):
        try:
            json.dumps(json.loads(text), ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            reason = "a lone surrogate in a text" if isinstance(error, UnicodeEncodeError) else str(error)
            raise MalformedBody(f"the body is not valid: {reason}", field="body") from None


def _refuse_nul(body: msgspec.Struct) -> None:
    """In a payload. Of names and other texts the engine itself says what it can't keep."""
    for field, name in zip(body.__struct_fields__, body.__struct_encode_fields__, strict=True):
        value = getattr(body, field)
        if isinstance(value, msgspec.Raw) and _NUL.search(value):
            raise MalformedBody(f"{name} has the character NUL in a text, which databases can't keep", field=name)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len({key for key, _ in pairs}) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise MalformedBody(f"the key {twice!r:.100} is there twice in one object", field=twice[:255])


def _number(text: str) -> None:
    if len(text) > LONGEST_NUMBER:
        raise MalformedBody(f"a number has more than {LONGEST_NUMBER} digits", field="body")
    if abs(float(text)) == float("inf"):
        raise MalformedBody(f"the number {text:.40} is beyond the range of a float", field="body")


def _constant(name: str) -> NoReturn:
    raise MalformedBody(f"{name} is not JSON", field="body")


# Decodes to nothing; only what it refuses counts.
_CHECKS: Final = json.JSONDecoder(
    object_pairs_hook=_no_key_twice, parse_float=_number, parse_int=_number, parse_constant=_constant
)
