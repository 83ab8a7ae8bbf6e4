"""JSON inside messages: payloads as they are, and records of our own.

Whatever comes from outside is checked to be JSON here: bytes that are not would spoil the stored event around them.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from holdfast.errors import InvalidRequest, Unsupported
from holdfast.model.values import NULL, Payload

Record = TypeVar("Record")

_NULL_BYTES: Final = b"null"
_ANY: Final = msgspec.json.Decoder().decode
_KIND: Final = ".type`"
"""Where msgspec says that the tag of a union is not one it knows."""
_ENCODE: Final = msgspec.json.Encoder().encode


def payload_bytes(payload: Payload) -> bytes:
    return bytes(payload)


def payload(data: bytes, field: str) -> Payload:
    """A payload from outside; no bytes at all are null. Raises InvalidRequest."""
    if not data or data == _NULL_BYTES:
        return NULL
    try:
        _ANY(data)
    except (ValueError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise InvalidRequest(f"{field} must be UTF-8 JSON: {why}", field=field) from error
    return Raw(data)


def record_bytes(record: Any) -> bytes:
    return _ENCODE(record)


def record(data: bytes, decoder: msgspec.json.Decoder[Record], field: str) -> Record:
    """A record in its JSON form. Raises InvalidRequest; Unsupported for a kind that is newer than this program."""
    try:
        data.decode()
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        if _KIND in str(error):
            why = f"{field} can't be read: {error}"[:400]
            raise Unsupported(f"{why}; the worker is newer: upgrade the server", field=field) from error
        raise InvalidRequest(f"{field} can't be read: {error}"[:500], field=field) from error
    except (ValueError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise InvalidRequest(f"{field} can't be read: {why:.500}", field=field) from error
