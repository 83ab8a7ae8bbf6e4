"""What is typed, read and checked: JSON, lengths of time, instants, pairs."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from msgspec import Raw

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)(ms|s|min|m|h|d|w)?")
_AROUND = 20


class Json(click.ParamType):  # type: ignore[type-arg] # generic in newer versions only
    """JSON text, @file, or - for standard input. It goes on as text, without its spaces, so that no number changes."""

    name = "JSON|@FILE|-"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Raw:
        from msgspec import Raw, json

        if isinstance(value, Raw):
            return value
        data = self._read(value, param, ctx)
        problem = problem_of(data)
        if problem is not None:
            self.fail(problem, param, ctx)
        return Raw(json.format(data, indent=-1))

    def _read(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        if value == "-":
            return sys.stdin.buffer.read()
        if not value.startswith("@"):
            return value.encode("utf-8", "surrogateescape")
        try:
            return Path(value[1:]).read_bytes()
        except OSError as error:
            self.fail(f"{value[1:]!r} can't be read: {error.strerror}", param, ctx)


def problem_of(data: bytes) -> str | None:
    """Why this is no JSON, and where; None if it is."""
    import msgspec

    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _located(data, error)
    return None


def _located(data: bytes, error: Exception) -> str:
    import json

    if not data.strip():
        return 'it is empty: give JSON, for example null, 42, \'"text"\' or \'{"name": "Ada"}\''
    try:
        text = data.decode()
        json.loads(text)
    except UnicodeDecodeError as wrong:
        return f"this is not UTF-8: byte {wrong.start + 1} can't be read"
    except json.JSONDecodeError as wrong:
        near = text[max(0, wrong.pos - _AROUND) : wrong.pos + _AROUND]
        hint = "; text needs quotes of its own: '\"text\"'" if re.match(r"\s*[A-Za-z]", text) else ""
        return f"this is not JSON: {wrong.msg} at line {wrong.lineno}, column {wrong.colno}, near {near!r}{hint}"
    except RecursionError:
        return "this JSON is nested too deeply"
    return f"this is not JSON: {error}"  # Python reads NaN and the like, nobody else does


class Length(click.ParamType):  # type: ignore[type-arg] # generic in newer versions only
    """A length of time: 30, 1.5s, 5m, 2h, 1d. Seconds if there is no unit."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = _LENGTH.fullmatch(value.strip())
        if found is None:
            self.fail(f"{value!r} is not a length of time: use 30, 90s, 5m, 2h or 1d", param, ctx)
        return float(found[1]) * _SECONDS[found[2] or "s"]


class Instant(click.ParamType):  # type: ignore[type-arg] # generic in newer versions only
    """An instant in ISO 8601, local time if it has no zone; or a length of time from now."""

    name = "TIME|DURATION"

    def __init__(self, *, ago: bool = False) -> None:
        self._ago = ago

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        if _LENGTH.fullmatch(value.strip()) and not value.strip().isdigit():
            distance = timedelta(seconds=Length().convert(value, param, ctx))
            return datetime.now(UTC) - distance if self._ago else datetime.now(UTC) + distance
        try:
            read = datetime.fromisoformat(value.strip())
        except ValueError:
            self.fail(f"{value!r} is not a time: use 2026-01-31T12:00, 2026-01-31T12:00Z or a length as 5m", param, ctx)
        return read.astimezone() if read.tzinfo is None else read


def pairs(_: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str] | None:
    """`--metadata key=value`, as often as one likes."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", param=param)
        found[key] = value
    return found or None


def is_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


JSON = Json()
LENGTH = Length()
INSTANT = Instant()
PAST = Instant(ago=True)
