"""Time-ordered ids (UUIDv7 layout): keys that lead an index must grow, or every insert lands on another page."""

from __future__ import annotations


def execution_id(now_us: int, entropy: int) -> str:
    """A UUIDv7 from the time and 74 random bits."""
    ms = now_us // 1000
    value = (
        (ms & 0xFFFFFFFFFFFF) << 80 | 0x7 << 76 | (entropy >> 62 & 0xFFF) << 64 | 0x2 << 62 | entropy & (1 << 62) - 1
    )
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
