"""`TaskContext`: what a task's body can ask and tell while it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from holdfast.model.payloads import decode, encode
from holdfast.model.values import Payload


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """Which attempt of which task this is. `idempotency_key` is the same for every attempt."""

    org: str
    workflow_execution_id: str
    task_no: int
    kind: str
    attempt: int
    scheduled_at: datetime
    started_at: datetime

    @property
    def idempotency_key(self) -> str:
        return f"{self.workflow_execution_id}/{self.task_no}"


class TaskContext:
    """The first parameter of a task that asks for it. Safe to use from the task's own thread."""

    __holdfast_task_context__: ClassVar[bool] = True
    __slots__ = (
        "_beat",
        "_chunk_bytes",
        "_details",
        "_emit_chunk",
        "_info",
        "_issue",
        "_stopped",
        "_token",
        "stop_reason",
    )

    def __init__(
        self,
        info: TaskInfo | Callable[[], TaskInfo],
        details: Payload | None,
        beat: Callable[[Payload | None, float | None], None],
        issue: Callable[[], str],
        *,
        emit_chunk: Callable[[Payload], None],
        chunk_bytes: int,
    ) -> None:
        self._info = info
        self.stop_reason = ""
        self._details = details
        self._beat = beat
        self._issue = issue
        self._emit_chunk = emit_chunk
        self._chunk_bytes = chunk_bytes
        self._token: str | None = None
        self._stopped = False

    @property
    def info(self) -> TaskInfo:
        """Made when somebody asks: most bodies never do."""
        if not isinstance(self._info, TaskInfo):
            self._info = self._info()
        return self._info

    def heartbeat(self, details: Any = None, *, progress: float | None = None) -> None:
        """Tell that the body is alive. `details` reach the next attempt; `progress` (0 to 1) is shown to people."""
        self._beat(None if details is None else encode(details, field="details"), progress)

    def emit(self, chunk: Any) -> None:
        """Say something to whoever watches this task: the next words of an answer, a line of a log, the name of a file.

        Any value that has a durable form, up to 64 KiB unless the engine is set otherwise; raises PayloadNotEncodable
        or PayloadTooLarge. It never waits: chunks are passed on within a tenth of a second, in order, and all of them
        before the end of the attempt is known. The newest 1,000 of a task are kept. Also a sign of life, like
        `heartbeat`.
        """
        self._emit_chunk(encode(chunk, field="chunk", limit=self._chunk_bytes))

    def last_details(self, type_hint: Any = Any) -> Any:
        """What the attempt before last reported with `heartbeat`, or None."""
        return None if self._details is None else decode(self._details, type_hint, field="details")

    def complete_later(self) -> str:
        """Leave the result of this attempt to somebody else: its token, for `client.complete_promise(token, ...)`.

        What the body returns is not the result then: the attempt goes on without a worker until somebody completes it
        or its `start_to_close` has passed, after which it is tried again like any other. A body that raises has failed,
        token or not. The next attempt has a token of its own, and this one no longer counts. In a thread this returns
        when the token is recorded; in an async body, a process that shares the database may not know it for a moment.
        Annotate the task with
        the type of the result that is to come, or with Any.
        """
        if self._token is None:
            self._token = self._issue()
        return self._token

    @property
    def token(self) -> str | None:
        """What `complete_later` has given out, if it was called."""
        return self._token

    @property
    def is_cancelled(self) -> bool:
        """Whether this attempt no longer counts: cancelled, timed out, or its workflow closed. For bodies in
        threads."""
        return self._stopped

    def stop(self, reason: str) -> None:
        self.stop_reason = reason
        self._stopped = True

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        info = self.info
        extra = {
            "org": info.org,
            "workflow_execution_id": info.workflow_execution_id,
            "task": info.kind,
            "task_no": info.task_no,
            "attempt": info.attempt,
        }
        return logging.LoggerAdapter(logging.getLogger("holdfast.task"), extra)
