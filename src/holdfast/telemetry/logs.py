"""Structured logs: one JSON object per line, which names the execution, task and attempt that a record is about.

What runs in a body is known from a context variable that workers set; `ctx.logger` and a task's logger say more by
themselves. Fields of `extra=` become fields of the line.
"""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import IO, Any, Final, Protocol


class Body(Protocol):
    """What runs here: a task attempt or a step."""

    def log_fields(self) -> dict[str, Any]: ...


RUNNING: Final[ContextVar[Body | None]] = ContextVar("holdfast_running", default=None)

_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "time", "level", "logger"}


class JsonFormatter(logging.Formatter):
    """A formatter for any handler of the standard library."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        running = RUNNING.get()
        if running is not None:
            line.update(running.log_fields())
        line.update({name: value for name, value in vars(record).items() if name not in _OWN})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def json_logs(level: int | str = logging.INFO, stream: IO[str] | None = None) -> logging.Handler:
    """Write everything that is logged in this process as JSON lines; the handler, to remove it again.

    Call it once, before anything else sets logging up. Where logging is set up already, use `JsonFormatter` there.
    """
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level)
    return handler
