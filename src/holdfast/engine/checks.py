"""Requests are checked at the door: what fails here has touched nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from holdfast.config import Limits
from holdfast.errors import InvalidDuration, InvalidRequest, PayloadTooLarge
from holdfast.model.standalone import PREFIX
from holdfast.model.validation import check_text
from holdfast.model.values import TEN_YEARS_S, Payload

log = logging.getLogger("holdfast.engine")

MOST_TAGS = 50
LARGEST = 2**62


def check_tags(pairs: Sequence[tuple[str, str]]) -> None:
    """What a list is narrowed by."""
    if len(pairs) > MOST_TAGS:
        raise InvalidRequest(
            f"a list can be narrowed by {MOST_TAGS} pairs of metadata, not {len(pairs)}", field="metadata"
        )
    for pair in pairs:
        for text in pair:
            check_text(text, "metadata")


def check_not_reserved(kind: str) -> None:
    """A workflow that callers may ask for by its kind."""
    if kind.startswith(PREFIX):
        raise InvalidRequest(
            f"workflow kinds that begin with {PREFIX!r} are the engine's own, as {kind!r:.60} is: start_task() runs a "
            "task on its own",
            field="workflow_kind",
        )


def check_timeout(seconds: float | None, field: str) -> None:
    if seconds is not None and not 0 < seconds <= TEN_YEARS_S:
        raise InvalidDuration(f"{field} must be more than 0 and at most ten years, not {seconds}", field=field)


def check_number(value: Any, field: str) -> None:
    """The number of something that was counted."""
    if type(value) is not int or not 0 < value < LARGEST:
        raise InvalidRequest(f"{field} must be a positive integer, not {value!r:.50}", field=field)


def check_payload(payload: Payload, field: str, limits: Limits) -> None:
    size = len(memoryview(payload))
    if size <= limits.payload_warning_bytes and size <= limits.payload_bytes:
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
