"""A Python workflow function as a program: its coroutine on its own deterministic loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from holdfast.errors import ControlFlow, HoldfastError, ProgramError
from holdfast.frontends.python.context import WorkflowContext, WorkflowInfo
from holdfast.frontends.python.definitions import WorkflowDefinition
from holdfast.frontends.python.failures import failure_of
from holdfast.frontends.python.futures import CallbackTimer
from holdfast.frontends.python.lines import calling_line
from holdfast.frontends.python.loop import DeterministicLoop, foreign_wait
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.payloads import decode, encode
from holdfast.model.values import MICRO, Failure
from holdfast.replay.machine import Machine


class DurableTimers:
    """The loop's view of time: the machine's."""

    __slots__ = ("_machine",)

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def now(self) -> float:
        return self._machine.now / MICRO

    def start(self, when: float, fire: Callable[[], None]) -> Callable[[], None]:
        return CallbackTimer(self._machine, "asyncio timer", round(when * MICRO), fire, calling_line()).cancel


class PythonProgram:
    """One execution's live code."""

    __slots__ = (
        "_cancel_reason",
        "_cancelled",
        "_definition",
        "_id",
        "_info",
        "_main",
        "_org",
        "_refused",
        "_started_at",
        "loop",
        "machine",
    )

    def __init__(self, definition: WorkflowDefinition, machine: Machine, org: str, execution_id: str) -> None:
        self.machine = machine
        self.loop = DeterministicLoop(DurableTimers(machine))
        self._definition = definition
        self._org = org
        self._id = execution_id
        self._main: asyncio.Task[Any] | None = None
        self._refused: HoldfastError | None = None
        self._cancelled = False
        self._info: WorkflowInfo | None = None
        self._cancel_reason = ""

    def start(self, event: e.WorkflowStarted) -> None:
        self._started_at = self.machine.now
        definition = self._definition
        arguments: tuple[Any, ...] = (WorkflowContext(self),)
        if definition.takes_input and not (definition.has_default and bytes(event.input) == b"null"):
            try:
                arguments = (*arguments, decode(event.input, definition.input_type, field="input"))
            except HoldfastError as error:
                self._refused = error
                return
        coroutine = definition.fn(*arguments) if definition.is_async else _plain(definition.fn, arguments)
        self._main = self.loop.create_task(coroutine, name=definition.kind)

    @property
    def info(self) -> WorkflowInfo:
        """Made when somebody asks: most workflows never do."""
        if self._info is None:
            event = self.machine.started
            assert event is not None, "a running program has been started"
            self._info = WorkflowInfo(
                org=self._org,
                workflow_execution_id=self._id,
                workflow_id=event.workflow_id,
                kind=event.kind,
                version=event.version,
                queue=event.queue,
                started_at=datetime.fromtimestamp(self._started_at / MICRO, UTC),
                metadata=event.metadata or {},
            )
        return self._info

    @property
    def queue(self) -> str:
        return self.machine.started.queue if self.machine.started is not None else "default"

    def cancel(self, reason: str) -> None:
        self._cancelled = True
        self._cancel_reason = reason
        if self._main is not None:
            self._main.cancel(reason or "cancelled")

    def run(self) -> c.Command | None:
        if self._main is None:
            return c.FailWorkflow(failure=failure_of(self._refused)) if self._refused is not None else None
        self.loop.drain()
        return self._ending(self._main) if self._main.done() else None

    def _ending(self, main: asyncio.Task[Any]) -> c.Command | None:
        if main.cancelled():
            if self._cancelled:
                return c.CancelWorkflow(reason=self._cancel_reason)
            return c.FailWorkflow(failure=Failure(type="CancelledError", message="the workflow cancelled itself"))
        error = main.exception()
        if error is None:
            try:
                return c.CompleteWorkflow(result=encode(main.result(), field="result"))
            except HoldfastError as unencodable:
                return c.FailWorkflow(failure=failure_of(unencodable))
        if isinstance(error, ControlFlow):
            return None
        platform = error if isinstance(error, ProgramError) else foreign_wait(error)
        if platform is not None:
            raise platform
        return c.FailWorkflow(failure=failure_of(error))

    def close(self) -> None:
        self.loop.close()

    def blocked_on(self) -> list[str]:
        return self.loop.blocked_on()


async def _plain(fn: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A plain `def` workflow: it can't wait, so it runs to its end in one go."""
    return fn(*arguments)


def program_maker(definition: WorkflowDefinition, org: str, execution_id: str) -> Callable[[Machine], PythonProgram]:
    def make(machine: Machine) -> PythonProgram:
        return PythonProgram(definition, machine, org, execution_id)

    return make
