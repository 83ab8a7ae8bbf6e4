"""The built-in workflow that runs one task and gives its result: see model.standalone.

Every worker that has tasks has it, without being told. Its version changes if what it asks for does.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from holdfast.frontends.python.definitions import WorkflowDefinition, workflow, workflow_definition
from holdfast.frontends.python.futures import TaskFuture
from holdfast.model.commands import ScheduleTask
from holdfast.model.payloads import encode_args
from holdfast.model.standalone import TASK_WORKFLOW, TaskOrder

if TYPE_CHECKING:
    from holdfast.frontends.python.context import WorkflowContext


@workflow
async def run_task(ctx: WorkflowContext, order: TaskOrder) -> Any:
    """As `ctx.task`, but arguments and result are passed on as they are, and there is no line of a user's to record."""
    machine, loop = ctx._machine, ctx._loop  # noqa: SLF001 - the front-end's own
    future: TaskFuture[Any] = TaskFuture(loop, machine, order.kind, Raw)
    future.line = ""
    args = encode_args(order.args)
    queue = ctx.info.queue

    def command(number: int) -> ScheduleTask:
        return ScheduleTask(
            task_no=number,
            kind=order.kind,
            input=args,
            queue=queue,
            priority=order.priority,
            retry=order.retry,
            timeouts=order.timeouts,
        )

    future.number = machine.schedule_task(command, future)
    return await future


def _built_in() -> WorkflowDefinition:
    definition = workflow_definition(run_task)
    assert definition is not None, "it is decorated"
    return dataclasses.replace(definition, kind=TASK_WORKFLOW)  # a name that nobody can give by the decorator


RUN_TASK: Final = _built_in()
