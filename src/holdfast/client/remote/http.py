"""`contract.executions.Executions` over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, NoReturn

from holdfast.client.remote.caller import Caller, decoded, escaped
from holdfast.contract.task_output import OutputPage, TaskNews, TaskNewsKind
from holdfast.errors import InvalidRequest
from holdfast.model.names import check_name
from holdfast.wire.rest import task_output_views as ov

WAIT_S: Final = 25.0
_TASK_NEWS: Final = frozenset(TaskNewsKind)


def no_transaction(using: Any) -> None:
    if using is not None:
        _refuse_using()


def _refuse_using() -> NoReturn:
    raise InvalidRequest(
        "only an engine in the same process can join your transaction: use Engine on this database", field="using"
    )


class HttpExecutions:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def task_output(
        self, org: str, execution_id: str, task_no: int, after: int = 0, limit: int = 100
    ) -> OutputPage:
        path = _path(org, execution_id, f"/tasks/{task_no}/output")
        return ov.read_page(await self._caller.get(path, ov.OutputPageView, {"after": after, "limit": limit}))

    async def follow_task(
        self, org: str, execution_id: str, task_no: int, after: int = 0
    ) -> AsyncIterator[list[TaskNews]]:
        path = _path(org, execution_id, f"/tasks/{task_no}/events")
        async for event in self._caller.events(path, {"after": after}, last=TaskNewsKind.ENDED):
            if event.kind in _TASK_NEWS:
                yield [ov.read_news(decoded(event.data, ov.TaskNewsView))]


def _path(org: str, execution_id: str, action: str = "") -> str:
    check_name(execution_id, "workflow_execution_id")
    return f"/api/orgs/{escaped(org)}/workflow-executions/{escaped(execution_id)}{action}"
