"""Which execution a workflow is, and its log."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast.model import events as e
from holdfast.model.values import MICRO

if TYPE_CHECKING:
    from holdfast.frontends.python.program import PythonProgram

_LOGGER = logging.getLogger("holdfast.workflow")


@dataclass(frozen=True, slots=True)
class WorkflowInfo:
    """Which execution this is, as it was started; `metadata` too (`ctx.metadata` is what it is now).

    `parent_execution_id` and `depth` are those of a child (`depth` 0: nobody's), `continued_from` is the run before
    after `ctx.continue_as_new`, `expires_at` the end of its execution timeout.
    """

    org: str
    workflow_execution_id: str
    workflow_id: str
    kind: str
    version: str
    queue: str
    started_at: datetime
    metadata: dict[str, str]
    parent_execution_id: str | None = None
    depth: int = 0
    continued_from: str | None = None
    expires_at: datetime | None = None


def info_of(org: str, execution_id: str, workflow_id: str, event: e.WorkflowStarted, started_at: int) -> WorkflowInfo:
    return WorkflowInfo(
        org=org,
        workflow_execution_id=execution_id,
        workflow_id=workflow_id,
        kind=event.kind,
        version=event.version,
        queue=event.queue,
        started_at=_instant(started_at),
        metadata=dict(event.metadata or {}),
        parent_execution_id=event.parent_execution_id,
        depth=event.depth,
        continued_from=event.continued_from,
        expires_at=None if event.expires_at is None else _instant(event.expires_at),
    )


def _instant(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / MICRO, UTC)


class WorkflowLogger(logging.LoggerAdapter[logging.Logger]):
    """Names the execution in every record, and is silent while a recorded turn is replayed."""

    def __init__(self, program: PythonProgram) -> None:
        super().__init__(_LOGGER, {})
        self._program = program

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the name logging gives it
        return not self._program.machine.replaying and super().isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        info = self._program.info
        kwargs["extra"] = {
            "workflow_execution_id": info.workflow_execution_id,
            "workflow_id": info.workflow_id,
            "workflow_kind": info.kind,
            "org": info.org,
            **(kwargs.get("extra") or {}),
        }
        return f"[{info.kind} {info.workflow_id}] {msg}", kwargs
