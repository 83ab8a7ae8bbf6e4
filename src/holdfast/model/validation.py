"""The rule for ids and names, the same wherever they come from."""

from __future__ import annotations

from typing import Any

from holdfast.errors import InvalidRequest

NAME_BYTES = 255
PRIORITIES = range(-(2**31), 2**31)


def check_name(value: Any, field: str, limit: int = NAME_BYTES) -> None:
    """Text, not empty, at most 255 bytes of UTF-8, no control characters."""
    if type(value) is str and 0 < len(value) <= limit and value.isascii() and value.isprintable():
        return
    check_text(value, field)
    size = len(value.encode())
    if not 0 < size <= limit:
        raise InvalidRequest(f"{field} must have 1 to {limit} bytes, not {size}", field=field)
    if any(ord(char) < ord(" ") or ord(char) == 127 for char in value):
        raise InvalidRequest(f"{field} must not contain control characters", field=field)


def check_text(value: Any, field: str) -> None:
    """Text that every store can keep."""
    if not isinstance(value, str):
        raise InvalidRequest(f"{field} must be text, not {type(value).__name__}", field=field)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"{field} is not valid Unicode: {error.reason}", field=field) from error
    if "\0" in value:
        raise InvalidRequest(f"{field} must not contain control characters: NUL is one", field=field)


def check_priority(value: Any) -> None:
    if type(value) is not int or value not in PRIORITIES:
        raise InvalidRequest(f"priority must be an integer of 32 bits, not {value!r:.50}", field="priority")
