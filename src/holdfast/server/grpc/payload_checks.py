"""Payloads from strangers: the same rules as for REST, named by the message's own field."""

from __future__ import annotations

import re
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from holdfast.config import ServerConfig
from holdfast.errors import InvalidRequest, MalformedBody
from holdfast.server.rest.json_bodies import check_document

_PLAIN: Final = re.compile(rb'-?(?:0|[1-9]\d{0,14})|true|false|null|"[ !#-\[\]-~]{0,200}"')
"""A payload of one part that can't be wrong: a short number, or a short text in ASCII without escapes."""
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def payload_fields(cls: Any) -> tuple[str, ...]:
    """The fields of a message that carry payloads: all that are bytes."""
    return tuple(field.name for field in cls.DESCRIPTOR.fields if field.type == FieldDescriptor.TYPE_BYTES)


def check_payloads(message: Any, fields: tuple[str, ...], rules: ServerConfig) -> None:
    """Raises InvalidRequest."""
    for field in fields:
        data = getattr(message, field)
        if isinstance(data, bytes):
            _check(data, field, rules)
            continue
        for one in data:
            _check(one, field, rules)


def _check(data: bytes, field: str, rules: ServerConfig) -> None:
    if not data or _PLAIN.fullmatch(data):
        return
    try:
        check_document(data, rules)
    except MalformedBody as error:
        why = error.message.replace("the body", field, 1)
        raise InvalidRequest(why if field in why else f"{field}: {why}", field=field) from None
    if _NUL.search(data):
        raise InvalidRequest(f"{field} has the character NUL in a text, which databases can't keep", field=field)
