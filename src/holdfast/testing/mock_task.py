"""`MockTaskContext`: a task's context without an engine, for unit tests of task bodies."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.config import Limits
from holdfast.frontends.python.task_context import TaskContext, TaskInfo
from holdfast.model.payloads import decode, encode
from holdfast.model.tokens import REPLAY_KEY, task_token
from holdfast.model.values import Payload
from holdfast.testing.virtual_time import START


class MockTaskContext(TaskContext):
    """Pass it to the body in the place of the context it asks for.

    `details` is what the attempt before reported, for `last_details()`. `heartbeats` has what the body reports, in
    order; `progress` the last progress; `emitted` what it says with `emit`. `cancel()` makes `is_cancelled` true.
    """

    __slots__ = ("emitted", "heartbeats", "progress")

    def __init__(
        self,
        *,
        kind: str = "task",
        attempt: int = 1,
        details: Any = None,
        org: str = "default",
        workflow_execution_id: str = "execution",
        task_no: int = 1,
        scheduled_at: datetime = START,
        started_at: datetime = START,
    ) -> None:
        info = TaskInfo(
            org=org,
            workflow_execution_id=workflow_execution_id,
            task_no=task_no,
            kind=kind,
            attempt=attempt,
            scheduled_at=scheduled_at,
            started_at=started_at,
        )
        super().__init__(
            info,
            None if details is None else encode(details, field="details"),
            self._note,
            self._make_token,
            emit_chunk=self._record_chunk,
            chunk_bytes=Limits().output_chunk_bytes,
        )
        self.emitted: list[Any] = []
        self.heartbeats: list[Any] = []
        self.progress: float | None = None

    def _note(self, details: Payload | None, progress: float | None) -> None:
        self.heartbeats.append(None if details is None else decode(details, Any, field="details"))
        if progress is not None:
            self.progress = progress

    def _record_chunk(self, chunk: Payload) -> None:
        self.emitted.append(decode(chunk, Any, field="chunk"))

    def _make_token(self) -> str:
        info = self.info
        return task_token(REPLAY_KEY, info.org, info.workflow_execution_id, info.task_no, info.attempt)

    def cancel(self, reason: str = "cancelled") -> None:
        """The attempt no longer counts: a body that looks at `is_cancelled` should stop."""
        self.stop(reason)
