"""`ctx.child`: workflows started by a workflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from holdfast import errors
from holdfast.frontends.python.composition import Outcome
from holdfast.frontends.python.definitions import Duration, time_limit_s, workflow_definition
from holdfast.frontends.python.futures import DurableFuture, ExternalSignalFuture
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.ids import child_execution_id
from holdfast.model.payloads import decode, encode
from holdfast.model.validation import check_name, check_priority, check_text
from holdfast.model.values import IfRunning, ParentClose, Payload

if TYPE_CHECKING:
    from holdfast.frontends.python.program import PythonProgram

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


class ChildOptions(TypedDict, total=False):
    """The options of `ctx.child`, for type checkers."""

    workflow_id: str | None
    queue: str | None
    priority: int
    version: str | None
    metadata: Mapping[str, str] | None
    execution_timeout: Duration | None
    on_parent_close: ParentClose | str
    if_running: IfRunning | str
    type_hint: Any


class ChildHandle(DurableFuture[T]):
    """A child: await it for its result, or leave it. One that is never awaited runs on by itself."""

    __slots__ = ("_program", "_propagates", "execution_id", "workflow_id")
    KIND = "child"

    execution_id: str
    workflow_id: str

    def __init__(self, program: PythonProgram, name: str, hint: Any) -> None:
        super().__init__(program.loop, program.machine, name, hint)
        self._program = program
        self._propagates = True

    def begun(self, started: c.StartChild | e.ChildStarted) -> None:
        self.number = started.child_no
        self.execution_id = started.child_execution_id
        self.workflow_id = started.workflow_id or started.child_execution_id
        self._propagates = started.propagate_failure

    def signal(self, signal_name: str, value: Any = None) -> DurableFuture[None]:
        """Send the child a signal; await it to know that it was delivered."""
        return send_signal(self._program, self, signal_name, value)

    def settle(self, body: e.EventBody) -> None:
        if self.done():
            return
        try:
            result = self._result(body)
        except errors.HoldfastError as error:
            if self._propagates:
                self.set_exception(error)
                self._log_traceback = False  # a child that nobody awaits is nobody's concern
            else:
                cancelled = isinstance(error, errors.ChildWorkflowFailed) and error.status == "cancelled"
                status: Literal["cancelled", "failed"] = "cancelled" if cancelled else "failed"
                outcome: Any = Outcome(0, self.id, status, None, error)
                self.set_result(outcome)
        else:
            whole: Any = result if self._propagates else Outcome(0, self.id, "completed", result)
            self.set_result(whole)

    def _result(self, body: e.EventBody) -> Any:
        assert isinstance(body, e.ChildCompleted | e.ChildFailed), "delivered by type"
        self.execution_id = body.child_execution_id
        if isinstance(body, e.ChildCompleted):
            return decode(body.result, self._hint, field=self.name)
        failure = body.failure
        kind = errors.ChildNotStarted if body.status == "not_started" else errors.ChildWorkflowFailed
        how = body.status.replace("_", " ")
        raise kind(
            f"child {self.name!r} ({body.child_execution_id}) {how}: {failure.type}: {failure.message}",
            status=body.status,
            child_execution_id=body.child_execution_id,
            error_type=failure.type,
            failure=failure,
        )

    def _take_back(self) -> None:
        self._machine.cancel_child(self.number, self.line)


def start_child(
    program: PythonProgram,
    workflow: str | Callable[..., Any],
    value: Any,
    *,
    workflow_id: str | None,
    queue: str | None,
    priority: int,
    version: str | None,
    metadata: Mapping[str, str] | None,
    execution_timeout: Duration | None,
    on_parent_close: str,
    if_running: str,
    propagate_failure: bool | None,
    type_hint: Any,
) -> ChildHandle[Any]:
    kind, declared_version, limit_s, result_type = _resolved(workflow)
    for name, given in (("workflow_id", workflow_id), ("queue", queue), ("version", version)):
        if given is not None:
            check_name(given, name)
    check_priority(priority)
    closing = _choice(ParentClose, on_parent_close, "on_parent_close")
    running = _choice(IfRunning, if_running, "if_running", refused=IfRunning.TERMINATE)
    if execution_timeout is not None:
        limit_s = time_limit_s(execution_timeout, "execution_timeout")
    payload = encode(value, field="input")
    texts = None if metadata is None else checked_metadata(metadata)
    propagates = program.propagate_child_failures if propagate_failure is None else bool(propagate_failure)
    handle: ChildHandle[Any] = ChildHandle(program, kind, result_type if type_hint is None else type_hint)

    def command(number: int) -> c.StartChild:
        return c.StartChild(
            child_no=number,
            child_execution_id=child_execution_id(program.execution_id, number, program.machine.now),
            kind=kind,
            version=version or declared_version,
            workflow_id=workflow_id,
            input=payload,
            queue=queue or program.queue,
            priority=priority,
            metadata=texts,
            execution_timeout_s=limit_s,
            on_parent_close=closing,
            if_running=running,
            propagate_failure=propagates,
            depth=program.info.depth + 1,
            line=handle.line,
        )

    handle.begun(program.machine.start_child(command, handle))
    return handle


def send_signal(
    program: PythonProgram, target: str | ChildHandle[Any], signal_name: str, value: Any
) -> DurableFuture[None]:
    """A signal to another execution, which is named by its workflow id or its execution id, or is a child."""
    check_name(signal_name, "signal_name")
    if isinstance(target, ChildHandle):
        address, child_no = target.execution_id, target.number
    else:
        check_name(target, "target")
        address, child_no = target, 0
    payload: Payload = encode(value, field="value")
    future = ExternalSignalFuture(program.loop, program.machine, signal_name)
    future.target = address

    def command(number: int) -> c.SignalExternal:
        return c.SignalExternal(
            signal_no=number,
            target=address,
            signal_name=signal_name,
            signal_value=payload,
            child_no=child_no,
            line=future.line,
        )

    future.number = program.machine.signal_external(command, future)
    return future


def checked_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    for key, value in metadata.items():
        check_name(key, "metadata")
        check_text(value, f"metadata[{key!r}]")
    return dict(metadata)


def _resolved(workflow: Any) -> tuple[str, str | None, float | None, Any]:
    """Kind, declared version, declared time limit and result type of what may be given as a workflow."""
    if isinstance(workflow, str):
        check_name(workflow, "workflow")
        return workflow, None, None, Any
    definition = workflow_definition(workflow)
    if definition is None:
        raise errors.InvalidRequest(
            f"{workflow!r:.100} is not a workflow: decorate it with @workflow, or give its kind as text",
            field="workflow",
        )
    return definition.kind, definition.version, definition.execution_timeout_s, definition.result_type


def resolved_kind(workflow: Any) -> tuple[str, str | None]:
    """Kind and declared version."""
    kind, version, _, _ = _resolved(workflow)
    return kind, version


def _choice(choices: type[E], value: str, field: str, *, refused: E | None = None) -> E:
    allowed = [choice for choice in choices if choice is not refused]
    for choice in allowed:
        if choice == value:
            return choice
    raise errors.InvalidRequest(f"{field} must be one of {', '.join(allowed)}, not {value!r:.50}", field=field)
