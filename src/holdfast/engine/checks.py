"""Requests are checked at the door: what fails here has touched nothing."""

from __future__ import annotations

import logging

from holdfast.config import Limits
from holdfast.errors import InvalidDuration, PayloadTooLarge
from holdfast.model.values import TEN_YEARS_S, Payload

log = logging.getLogger("holdfast.engine")


def check_timeout(seconds: float | None, field: str) -> None:
    if seconds is not None and not 0 < seconds <= TEN_YEARS_S:
        raise InvalidDuration(f"{field} must be more than 0 and at most ten years, not {seconds}", field=field)


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
