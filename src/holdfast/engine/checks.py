"""Requests are checked at the door: what fails here has touched nothing."""

from __future__ import annotations

import logging

from holdfast.config import Limits
from holdfast.errors import PayloadTooLarge
from holdfast.model.values import Payload

log = logging.getLogger("holdfast.engine")


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
