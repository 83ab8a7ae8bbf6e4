"""A Python workflow, function or class, as a program: its coroutine on its own deterministic loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from holdfast.errors import ContinueAsNew, ControlFlow, HoldfastError, NeverAwaited, ProgramError, QueryFailed
from holdfast.frontends.python.calls import Calls
from holdfast.frontends.python.conditions import settle_conditions
from holdfast.frontends.python.context import WorkflowContext
from holdfast.frontends.python.definitions import WorkflowDefinition
from holdfast.frontends.python.failures import failure_of
from holdfast.frontends.python.futures import CallbackTimer
from holdfast.frontends.python.info import WorkflowInfo, info_of
from holdfast.frontends.python.loop import DeterministicLoop, foreign_wait
from holdfast.frontends.python.messages import Inbox
from holdfast.frontends.python.source_lines import calling_line
from holdfast.frontends.python.state import DurableState
from holdfast.frontends.python.wait_for import settle_wait_for
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.payloads import decode, encode
from holdfast.model.tokens import replay_key
from holdfast.model.values import MICRO, NULL, Failure, Payload
from holdfast.replay.machine import Machine

settle_wait_for()


class DurableTimers(msgspec.Struct):
    """The loop's view of time: the machine's."""

    machine: Machine

    def now(self) -> float:
        return self.machine.now / MICRO

    def start(self, when: float, fire: Callable[[], None]) -> Callable[[], None]:
        return CallbackTimer(self.machine, "asyncio timer", round(when * MICRO), fire, calling_line()).cancel


class PythonProgram:
    """One execution's live code."""

    __slots__ = (
        "_calls",
        "_continued",
        "_definition",
        "_failure",
        "_id",
        "_inbox",
        "_info",
        "_main",
        "_metadata",
        "_state",
        "_token_key",
        "_workflow_id",
        "cancel_reason",
        "cancel_requested",
        "context",
        "loop",
        "machine",
        "org",
        "propagate_child_failures",
        "spoiled",
        "started_at",
    )

    def __init__(  # noqa: PLR0917 - one for every execution: names cost more than the rest of the call
        self,
        definition: WorkflowDefinition,
        machine: Machine,
        org: str,
        execution_id: str,
        token_key: Callable[[str], bytes],
        propagate_child_failures: bool,
    ) -> None:
        self.machine = machine
        self.loop = DeterministicLoop(DurableTimers(machine))
        self.org = org
        self._id = execution_id
        self._workflow_id = ""
        self._token_key = token_key
        self.propagate_child_failures = propagate_child_failures
        self.cancel_requested = False
        self.cancel_reason = ""
        self.spoiled = False
        """Whether a query has changed it, so that it is no longer what its history says."""
        self.context: WorkflowContext | None = None
        self._definition = definition
        self._main: asyncio.Task[Any] | None = None
        self._calls: Calls | None = None
        self._failure: BaseException | None = None
        self._continued: c.ContinueWorkflow | None = None
        self._info: WorkflowInfo | None = None
        self._inbox: Inbox | None = None
        self._state: DurableState | None = None
        self._metadata: dict[str, str] | None = None

    # --- what happens to it ---

    def start(self, event: e.WorkflowStarted) -> None:
        self.started_at = self.machine.now
        definition = self._definition
        self.context = WorkflowContext(self)
        arguments: tuple[Any, ...] = (self.context,)
        try:
            if definition.takes_input and not (definition.has_default and bytes(event.input) == bytes(NULL)):
                arguments = (*arguments, decode(event.input, definition.input_type, field="input"))
            if definition.cls is not None:
                arguments = (self._make_instance(definition, definition.cls), *arguments)
        except ControlFlow:
            return  # the machine knows why
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - input that does not fit, or the user's __init__, even sys.exit()
            self.fail(error)
            return
        coroutine = definition.fn(*arguments) if definition.is_async else _plain(definition.fn, arguments)
        self._main = self.loop.create_task(coroutine, name=definition.kind)

    def _make_instance(self, definition: WorkflowDefinition, cls: type[Any]) -> Any:
        """The instance, and the handling of the signals that were there before it."""
        instance = self.loop.inside(lambda: cls(self.context) if definition.init_takes_context else cls())
        self._calls = Calls(self, definition.handlers, instance)
        for _, name in self.machine.queued_signals():
            if self.takes_signal(name):
                self.machine.hand_over_signal(name)
        return instance

    def cancel(self, reason: str) -> None:
        self.cancel_requested = True
        self.cancel_reason = reason
        if self._main is not None:
            self._main.cancel(reason or "cancelled")

    def takes_signal(self, signal_name: str) -> bool:
        return self._calls is not None and self._calls.takes_signal(signal_name)

    def signal(self, signal_name: str, value: Payload, seq: int) -> None:
        assert self._calls is not None, "it takes this signal"
        self._calls.signal(signal_name, value, seq)

    def update(self, request: e.UpdateRequested) -> None:
        (self._calls or Calls(self, self._definition.handlers, None)).update(request)

    @property
    def has_handlers(self) -> bool:
        handlers = self._definition.handlers
        return bool(handlers.signals or handlers.updates)

    def query(self, name: str, input: Payload, has_input: bool) -> Payload:
        """The encoded answer of a query; the program is left as it was, or `spoiled` says that it was not."""
        if name == "__stack__":
            return encode(self.loop.blocked_on(), field="answer")
        if name == "__mailbox__":
            return encode(self.machine.queued_signals(), field="answer")
        calls = self._calls
        if calls is None:
            if self._definition.cls is not None:
                why = "has not begun" if self._failure is None else f"could not begin: {self._failure}"
                raise QueryFailed(f"the workflow {why}, so nothing can answer")
            calls = Calls(self, self._definition.handlers, None)
        if name == "__handlers__":
            return encode(calls.names(), field="answer")
        answer: Payload = calls.query(name, input, given=has_input)
        return answer

    # --- what it says about itself ---

    def on_reset(self, event: e.WorkflowReset) -> None:
        self._workflow_id = event.workflow_id
        self._info = None

    @property
    def token_key(self) -> bytes:
        """Made when somebody asks: it costs as much as a turn."""
        return self._token_key(self._id)

    @property
    def own_id(self) -> str:
        return self._id

    @property
    def execution_id(self) -> str:
        """Its own, or while it lives through another one's past again, that one's: so its code goes the same way."""
        return self.machine.reset_sources[0] if self.machine.reset_sources else self._id

    @property
    def info(self) -> WorkflowInfo:
        """Made when somebody asks: most workflows never do."""
        if self._info is None:
            workflow_id = self._workflow_id or self.started.workflow_id
            self._info = info_of(self.org, self.execution_id, workflow_id, self.started, self.started_at)
        return self._info

    @property
    def started(self) -> e.WorkflowStarted:
        event = self.machine.started
        assert event is not None, "a running program has been started"
        return event

    @property
    def queue(self) -> str:
        return self.machine.started.queue if self.machine.started is not None else "default"

    @property
    def state(self) -> DurableState:
        if self._state is None:
            self._state = DurableState(self.machine)
        return self._state

    @property
    def metadata(self) -> dict[str, str]:
        """As it is now; to be changed by `set_metadata` only."""
        if self._metadata is None:
            self._metadata = dict(self.started.metadata or {})
        return self._metadata

    @property
    def inbox(self) -> Inbox:
        if self._inbox is None:
            self._inbox = Inbox(self.started.had)
        return self._inbox

    @property
    def running_handlers(self) -> int:
        return self._calls.running if self._calls is not None else 0

    # --- how it ends ---

    def fail(self, error: BaseException) -> None:
        """Something besides `run` itself has failed, which ends the workflow as well."""
        self._failure = self._failure or error

    def continue_as_new(self, command: c.ContinueWorkflow) -> NoReturn:
        """Noted before it is raised: whatever the code makes of the exception, this run is over."""
        self.machine.check_alive()
        self._continued = self._continued or command
        raise ContinueAsNew

    @property
    def _over(self) -> bool:
        return self._main is None or self._main.done() or self._continued is not None or self._failure is not None

    def run(self) -> c.Command | None:
        main = self._main
        if main is not None:
            self.loop.drain()
            if self.machine.watched and not self._over:
                settle_conditions(self.machine, self.loop)
        if self._continued is not None:
            if main is not None and main.done() and not main.cancelled():
                main.exception()  # looked at, or it would be logged
            return self._continued
        if self._failure is not None:
            return self._failed(self._failure)
        return self._ending(main) if main is not None and main.done() else None

    def _ending(self, main: asyncio.Task[Any]) -> c.Command | None:
        if main.cancelled():
            if self.cancel_requested:
                return c.CancelWorkflow(reason=self.cancel_reason)
            return c.FailWorkflow(failure=Failure(type="CancelledError", message="the workflow cancelled itself"))
        error = main.exception()
        if error is not None:
            return self._failed(error)
        if self.machine.awaits_outcomes():
            self._check_nothing_lost()
        try:
            return c.CompleteWorkflow(result=encode(main.result(), field="result"))
        except HoldfastError as unencodable:
            return c.FailWorkflow(failure=failure_of(unencodable))

    def _failed(self, error: BaseException) -> c.Command | None:
        if isinstance(error, ControlFlow):
            return None
        platform = error if isinstance(error, ProgramError) else foreign_wait(error)
        if platform is not None:
            raise platform
        return c.FailWorkflow(failure=failure_of(error))

    def _check_nothing_lost(self) -> None:
        lost = [work for work in self.machine.open_slots("task", "step") if not work.awaited]
        if lost:
            names = "; ".join(f"{work.KIND} {work.name!r} ({work.line})" for work in lost[:5])
            raise NeverAwaited(
                f"the workflow ended while work it had started was never awaited and would be lost: {names}"
                f"{f' and {len(lost) - 5} more' if len(lost) > 5 else ''}. Await it, cancel it with .cancel(), or let "
                "a child workflow do it, which runs on by itself",
                work=tuple(f"{work.KIND} {work.name}" for work in lost),
            )

    def close(self) -> None:
        self.loop.close()
        # They refer to this one: without this only the garbage collector could free them.
        self.context = self._calls = self._state = None

    def blocked_on(self) -> list[str]:
        return self.loop.blocked_on()


async def _plain(fn: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A plain `def` workflow: it can't wait, so it runs to its end in one go."""
    return fn(*arguments)


def program_maker(
    definition: WorkflowDefinition,
    org: str,
    execution_id: str,
    *,
    propagate_child_failures: bool = True,
    token_key: Callable[[str], bytes] = replay_key,
) -> Callable[[Machine], PythonProgram]:
    """`token_key` gives the key of an execution: see model.tokens. Without it, its promises' tokens are no good."""

    def make(machine: Machine) -> PythonProgram:
        return PythonProgram(definition, machine, org, execution_id, token_key, propagate_child_failures)

    return make
