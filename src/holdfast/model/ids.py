"""Time-ordered ids (UUIDv7 layout): keys that lead an index must grow, or every insert lands on another page."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

_48_BITS = (1 << 48) - 1


def execution_id(now_us: int, nth: int, entropy: int) -> str:
    """A UUIDv7 of the microsecond, the place within it (0 to 16383) and 48 random bits: ids grow as they are made."""
    return f"{_moment(now_us)}-{0x8000 | nth & 0x3FFF:04x}-{entropy & _48_BITS:012x}"


@lru_cache(maxsize=8)
def _moment(now_us: int) -> str:
    """The first half of an id, which all that begin in one batch share."""
    ms, us = divmod(now_us, 1000)
    text = f"{ms & _48_BITS:012x}"
    return f"{text[:8]}-{text[8:]}-{0x7 << 12 | us * 4096 // 1000:04x}"


def child_execution_id(parent_id: str, child_no: int, now_us: int) -> str:
    """The id of a parent's n-th child: the worker knows it before the child is there, and always finds the same."""
    digest = blake2b(f"{parent_id}/{child_no}".encode(), digest_size=6).digest()
    return execution_id(now_us, child_no, int.from_bytes(digest))
