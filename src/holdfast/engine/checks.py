"""Requests are checked at the door: what fails here has touched nothing."""

from __future__ import annotations

import logging

from holdfast.config import Limits
from holdfast.errors import InvalidRequest, PayloadTooLarge
from holdfast.model.values import Payload

log = logging.getLogger("holdfast.engine")


def check_name(value: str | None, field: str, limits: Limits) -> None:
    """Ids and names: text, not empty, at most 255 bytes of UTF-8, no control characters."""
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidRequest(f"{field} must be text, not {type(value).__name__}", field=field)
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"{field} is not valid Unicode: {error.reason}", field=field) from error
    if not 0 < size <= limits.id_bytes:
        raise InvalidRequest(f"{field} must have 1 to {limits.id_bytes} bytes, not {size}", field=field)
    if not value.isprintable() and any(ord(char) < 32 or ord(char) == 127 for char in value):
        raise InvalidRequest(f"{field} must not contain control characters", field=field)


def check_payload(payload: Payload, field: str, limits: Limits) -> None:
    size = len(memoryview(payload))
    if size <= limits.payload_warning_bytes:
        return
    if size > limits.payload_bytes:
        raise PayloadTooLarge(
            f"{field} has {size} bytes, more than the {limits.payload_bytes} allowed: store it elsewhere and pass a "
            "reference",
            field=field,
            size=size,
            limit=limits.payload_bytes,
        )
    log.warning(
        "%s has %d bytes: everything that reads this history carries it; better store it elsewhere", field, size
    )
