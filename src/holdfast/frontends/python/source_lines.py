"""The line of the user's code that asked for something: recorded with every command, shown in every determinism
error."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import FrameType

_OURS = str(Path(__file__).parents[2])
_ASYNCIO = str(Path(asyncio.__file__).parent)
_LABELS: dict[str, str] = {}
_MAX_LABELS = 10_000


def _label(filename: str) -> str:
    """The file's name, or nothing for code that is Holdfast's or asyncio's own."""
    if filename.startswith((_OURS, _ASYNCIO)):
        return ""
    return Path(filename).name


def calling_line(above: int = 0) -> str:
    """`file.py:42 in function` of the nearest caller outside Holdfast and asyncio. The first `above` callers, whoever
    calls this being one of them, are known to be Holdfast's: not to look at them spares making their frames."""
    frame: FrameType | None = sys._getframe(above + 1)  # noqa: SLF001 - a private name, a documented function
    while frame is not None:
        code = frame.f_code
        label = _LABELS.get(code.co_filename)
        if label is None:
            if len(_LABELS) >= _MAX_LABELS:
                _LABELS.clear()
            label = _LABELS[code.co_filename] = _label(code.co_filename)
        if label:
            return f"{label}:{frame.f_lineno} in {code.co_qualname}"
        frame = frame.f_back
    return ""
