"""Time-ordered ids (UUIDv7 layout): keys that lead an index must grow, or every insert lands on another page."""

from __future__ import annotations

from hashlib import blake2b

_48_BITS = (1 << 48) - 1


def execution_id(now_us: int, nth: int, entropy: int) -> str:
    """A UUIDv7 of the microsecond, the place within it (0 to 16383) and 48 random bits: ids grow as they are made."""
    ms, us = divmod(now_us, 1000)
    high = (ms & _48_BITS) << 16 | 0x7 << 12 | us * 4096 // 1000
    low = 0x2 << 62 | (nth & 0x3FFF) << 48 | entropy & _48_BITS
    text = f"{high:016x}{low:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def child_execution_id(parent_id: str, child_no: int, now_us: int) -> str:
    """The id of a parent's n-th child: the worker knows it before the child is there, and always finds the same."""
    digest = blake2b(f"{parent_id}/{child_no}".encode(), digest_size=6).digest()
    return execution_id(now_us, child_no, int.from_bytes(digest))
