"""`ctx`: everything a Python workflow can say.

Each method that asks for something starts it at once and returns a future of the workflow's own loop; await it, or
compose it with asyncio. Nothing here waits, reads a clock or touches the outside: it all goes through the machine.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeVar, Unpack, overload
from uuid import UUID

from holdfast.errors import InvalidRequest
from holdfast.frontends.python.children import (
    ChildHandle,
    ChildOptions,
    checked_metadata,
    resolved_kind,
    send_signal,
    start_child,
)
from holdfast.frontends.python.composition import AllOf, AnyOf, NOf, Outcome, RaceOf, SettledOf, listed
from holdfast.frontends.python.conditions import ConditionFuture
from holdfast.frontends.python.context_messages import OutsideWorld
from holdfast.frontends.python.definitions import Duration, duration_s, task_definition, task_timeouts
from holdfast.frontends.python.futures import (
    CallbackTimer,
    DurableFuture,
    SignalFuture,
    StepFuture,
    TaskFuture,
    TimerFuture,
)
from holdfast.frontends.python.info import WorkflowInfo, WorkflowLogger
from holdfast.frontends.python.loop import WorkflowFuture
from holdfast.frontends.python.saga import Saga
from holdfast.frontends.python.source_lines import calling_line
from holdfast.frontends.python.state import DurableState
from holdfast.model.commands import ContinueWorkflow, ScheduleTask
from holdfast.model.payloads import decode, encode, encode_args
from holdfast.model.validation import NAME_BYTES, check_name, check_priority
from holdfast.model.values import (
    DEFAULT_STEP_RETRY,
    DEFAULT_TASK_RETRY,
    DEFAULT_TIMEOUTS,
    MICRO,
    IfRunning,
    ParentClose,
    RetryPolicy,
)

if TYPE_CHECKING:
    from holdfast.frontends.python.program import PythonProgram

T = TypeVar("T")


class WorkflowContext(OutsideWorld):
    """The first parameter of every workflow."""

    __holdfast_workflow_context__: ClassVar[bool] = True
    __slots__ = ("_logger", "_loop", "_machine", "_program", "_random")

    def __init__(self, program: PythonProgram) -> None:
        self._program = program
        self._machine = program.machine
        self._loop = program.loop
        self._random: random.Random | None = None
        self._logger: WorkflowLogger | None = None

    # --- work ---

    @overload
    def run(
        self,
        fn: Callable[..., Awaitable[T]],
        *args: Any,
        name: str | None = None,
        retry: RetryPolicy | None = None,
        type_hint: Any = None,
    ) -> DurableFuture[T]: ...
    @overload
    def run(
        self,
        fn: Callable[..., T],
        *args: Any,
        name: str | None = None,
        retry: RetryPolicy | None = None,
        type_hint: Any = None,
    ) -> DurableFuture[T]: ...
    def run(
        self,
        fn: Callable[..., Any],
        *args: Any,
        name: str | None = None,
        retry: RetryPolicy | None = None,
        type_hint: Any = None,
    ) -> DurableFuture[Any]:
        """Run a function as a step: inline in this worker, its result recorded.

        It runs again if the process dies before the result is recorded. `def` functions run in a thread. A failing
        step is tried three times unless `retry` says otherwise, then raises StepFailed.
        """
        if not callable(fn):
            raise InvalidRequest(f"ctx.run needs a function, not {type(fn).__name__}", field="fn")
        try:
            step_name, result_type = _step_facts(fn)
        except TypeError:  # not hashable: a callable object of the user's own
            step_name, result_type = type(fn).__name__, Any
        if name is not None:
            check_name(name, "name")
            step_name = name
        hint = result_type if type_hint is None else type_hint
        future: StepFuture[Any] = StepFuture(self._loop, self._machine, step_name, hint)
        future.number = self._machine.request_step(
            step_name, (fn, args), retry or DEFAULT_STEP_RETRY, future.line, future
        )
        return future

    @overload
    def task(self, task: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> DurableFuture[T]: ...
    @overload
    def task(self, task: Callable[..., T], *args: Any, **options: Any) -> DurableFuture[T]: ...
    @overload
    def task(self, task: str, *args: Any, **options: Any) -> DurableFuture[Any]: ...
    def task(
        self,
        task: Callable[..., Any] | str,
        *args: Any,
        queue: str | None = None,
        retry: RetryPolicy | None = None,
        priority: int = 0,
        start_to_close: Duration | None = None,
        schedule_to_close: Duration | None = None,
        heartbeat_timeout: Duration | None = None,
        type_hint: Any = None,
    ) -> DurableFuture[Any]:
        """Put a task on a queue, for any worker that knows its kind. Give a function made with @task, or a kind.

        Without `retry` it is tried until it succeeds; what stands at @task counts where nothing is given here.
        """
        if isinstance(task, str):
            check_name(task, "task")
            kind, definition = task, None
        else:
            definition = task_definition(task)
            if definition is None:
                raise InvalidRequest(
                    f"ctx.task needs a function decorated with @task or a task kind, not {task!r}", field="task"
                )
            kind = definition.kind
        if queue is not None:
            check_name(queue, "queue")
        if priority:
            check_priority(priority)
        if retry is not None and not isinstance(retry, RetryPolicy):
            raise InvalidRequest(f"retry must be a RetryPolicy, not {retry!r:.50}", field="retry")
        declared = definition.timeouts if definition is not None else None
        timeouts = task_timeouts(start_to_close, schedule_to_close, heartbeat_timeout, base=declared)
        policy = retry or (definition.retry if definition is not None else None) or DEFAULT_TASK_RETRY
        on_queue = queue or (definition.queue if definition is not None else None) or self._program.queue
        hint = type_hint if type_hint is not None else (definition.result_type if definition is not None else Any)
        future: TaskFuture[Any] = TaskFuture(self._loop, self._machine, kind, hint)
        payload = encode_args(args)

        def command(number: int) -> ScheduleTask:
            return ScheduleTask(
                task_no=number,
                kind=kind,
                input=payload,
                queue=on_queue,
                priority=priority,
                retry=policy,
                timeouts=timeouts or DEFAULT_TIMEOUTS,
                line=future.line,
            )

        future.number = self._machine.schedule_task(command, future)
        return future

    @overload
    def child(
        self,
        workflow: str | Callable[..., Any],
        input: Any = None,
        *,
        propagate_failure: Literal[False],
        **options: Unpack[ChildOptions],
    ) -> ChildHandle[Outcome]: ...
    @overload
    def child(
        self,
        workflow: Callable[..., Awaitable[T]],
        input: Any = None,
        *,
        propagate_failure: bool | None = None,
        **options: Unpack[ChildOptions],
    ) -> ChildHandle[T]: ...
    @overload
    def child(
        self,
        workflow: str | Callable[..., Any],
        input: Any = None,
        *,
        propagate_failure: bool | None = None,
        **options: Unpack[ChildOptions],
    ) -> ChildHandle[Any]: ...
    def child(
        self,
        workflow: str | Callable[..., Any],
        input: Any = None,
        *,
        workflow_id: str | None = None,
        queue: str | None = None,
        priority: int = 0,
        version: str | None = None,
        metadata: Mapping[str, str] | None = None,
        execution_timeout: Duration | None = None,
        on_parent_close: ParentClose | str = ParentClose.DEFAULT,
        if_running: IfRunning | str = IfRunning.FAIL,
        propagate_failure: bool | None = None,
        type_hint: Any = None,
    ) -> ChildHandle[Any]:
        """Start a workflow as a child, on this workflow's queue unless `queue` names another. Await the handle for its
        result, or leave it: then it runs on by itself.

        A child that fails raises ChildWorkflowFailed at the await; with `propagate_failure=False` awaiting gives an
        Outcome, well or badly. Cancelling the handle, or the await, asks the child to cancel. `on_parent_close` says
        what becomes of an open child when this workflow closes.
        """
        return start_child(
            self._program,
            workflow,
            input,
            workflow_id=workflow_id,
            queue=queue,
            priority=priority,
            version=version,
            metadata=metadata,
            execution_timeout=execution_timeout,
            on_parent_close=on_parent_close,
            if_running=if_running,
            propagate_failure=propagate_failure,
            type_hint=type_hint,
        )

    # --- several things at once ---

    def all(self, *items: Any) -> WorkflowFuture[list[Any]]:
        """All results, in the order of the list. The first failure ends it and cancels the rest."""
        return AllOf(self._loop, "all", listed(items))

    def any(self, *items: Any) -> WorkflowFuture[Outcome]:
        """The first success; the rest is cancelled. AllFailed when there is none."""
        return AnyOf(self._loop, "any", listed(items))

    def race(self, *items: Any) -> WorkflowFuture[Outcome]:
        """The first to end, well or badly; the rest is cancelled."""
        return RaceOf(self._loop, "race", listed(items))

    def n_of(self, n: int, *items: Any) -> WorkflowFuture[list[Outcome]]:
        """The first `n` successes, in the order in which they came; the rest is cancelled."""
        if type(n) is not int or n < 1:
            raise InvalidRequest(f"n must be a whole number of at least 1, not {n!r:.50}", field="n")
        return NOf(self._loop, n, listed(items))

    def settled(self, *items: Any) -> WorkflowFuture[list[Outcome]]:
        """How each ended, in the order of the list; never raises for an item."""
        return SettledOf(self._loop, "settled", listed(items))

    def saga(self, *, parallel: bool = False) -> Saga:
        """`async with ctx.saga() as saga`: work and its undoing. If the block fails or is cancelled, what succeeded in
        it is undone, the last first; with `parallel`, all at once."""
        return Saga(self, self._loop, parallel=parallel)

    # --- time ---

    def now(self) -> datetime:
        """The workflow's time: that of the event being delivered, the same on every replay."""
        return datetime.fromtimestamp(self._machine.now / MICRO, UTC)

    def sleep(self, duration: Duration) -> DurableFuture[None]:
        """Wait: seconds or a timedelta, from nothing to ten years."""
        return self._timer(self._machine.now + int(duration_s(duration, "duration") * MICRO), "sleep")

    def sleep_until(self, instant: datetime) -> DurableFuture[None]:
        """Wait until an instant; one that has passed is over at once. Needs a time zone."""
        if instant.tzinfo is None:
            raise InvalidRequest(f"sleep_until needs a datetime with a time zone, not {instant!r}", field="instant")
        seconds = (instant - self.now()) / timedelta(seconds=1)
        duration_s(max(seconds, 0.0), "instant")
        return self._timer(int(instant.timestamp() * MICRO), "sleep_until")

    def _timer(self, fire_at: int, name: str) -> DurableFuture[None]:
        future = TimerFuture(self._loop, self._machine, name)
        future.until_at = fire_at
        future.number = self._machine.start_timer(fire_at, future.line, future)
        return future

    def wait_until(self, predicate: Callable[[], Any], *, timeout: Duration | None = None) -> DurableFuture[None]:
        """Wait until `predicate()` is true. It is called now and whenever something has happened to the workflow, and
        must only look at the workflow's own data. Late: ConditionTimeout."""
        given: object = predicate
        if not callable(given) or inspect.iscoroutinefunction(given):
            raise InvalidRequest(
                f"wait_until needs a plain function that answers at once, not {predicate!r:.100}", field="predicate"
            )
        limit_us = None if timeout is None else int(duration_s(timeout, "timeout") * MICRO)
        future = ConditionFuture(self._loop, self._machine, predicate)
        future.watch(limit_us)
        return future

    # --- signals ---

    @overload
    def wait_for_signal(
        self, signal_name: str, type_hint: type[T], *, timeout: Duration | None = None
    ) -> DurableFuture[T]: ...
    @overload
    def wait_for_signal(
        self, signal_name: str, type_hint: Any = ..., *, timeout: Duration | None = None
    ) -> DurableFuture[Any]: ...
    def wait_for_signal(
        self, signal_name: str, type_hint: Any = Any, *, timeout: Duration | None = None
    ) -> DurableFuture[Any]:
        """The next signal of this name, in order of arrival; waits if there is none. Late: SignalTimeout."""
        check_name(signal_name, "signal_name")
        self._check_not_handled(signal_name)
        future: SignalFuture[Any] = SignalFuture(self._loop, self._machine, signal_name, type_hint)
        future.timer = None
        limit_s = None if timeout is None else duration_s(timeout, "timeout")
        value = self._machine.take_signal(signal_name)
        if value is not None:
            future.settle_signal(value)
            return future
        self._machine.wait_signal(signal_name, future)
        if limit_s is not None:
            fire_at = self._machine.now + int(limit_s * MICRO)
            future.timer = CallbackTimer(
                self._machine, f"timeout of {signal_name}", fire_at, future.time_out, future.line
            )
        return future

    def has_signal(self, signal_name: str) -> bool:
        """Whether a signal of this name is waiting; takes nothing."""
        return self._machine.signal_count(signal_name) > 0

    def pending_signal_count(self, signal_name: str) -> int:
        return self._machine.signal_count(signal_name)

    @overload
    async def drain_signals(self, signal_name: str, type_hint: type[T]) -> list[T]: ...
    @overload
    async def drain_signals(self, signal_name: str, type_hint: Any = ...) -> list[Any]: ...
    async def drain_signals(self, signal_name: str, type_hint: Any = Any) -> list[Any]:
        """All waiting signals of this name, in order; an empty list if there are none."""
        self._check_not_handled(signal_name)
        values = self._machine.drain_signals(signal_name)
        return [decode(value, type_hint, field=signal_name) for value in values]

    def _check_not_handled(self, signal_name: str) -> None:
        if self._program.takes_signal(signal_name):
            raise InvalidRequest(
                f"signals {signal_name!r} go to their handler and never wait in a queue: let the handler keep what you "
                "need and wait for it with ctx.wait_until",
                field="signal_name",
            )

    def signal_external_workflow(
        self, target: str | ChildHandle[Any], signal_name: str, value: Any = None
    ) -> DurableFuture[None]:
        """Signal another workflow: its workflow id, its execution id, or a child. Await it to know that the signal was
        delivered; otherwise ExternalSignalFailed."""
        return send_signal(self._program, target, signal_name, value)

    def all_handlers_finished(self) -> bool:
        """Whether no signal or update handler is at work: `await ctx.wait_until(ctx.all_handlers_finished)`."""
        return self._program.running_handlers == 0

    # --- what others may see ---

    @property
    def state(self) -> DurableState:
        """A mapping of text to values that others may read. A value changed in place has to be assigned again."""
        return self._program.state

    @property
    def metadata(self) -> Mapping[str, str]:
        """The execution's metadata as it is now."""
        return MappingProxyType(self._program.metadata)

    def set_metadata(self, mapping: Mapping[str, str | None] | None = None, /, **values: str | None) -> None:
        """Set metadata, text to text; None takes a key away."""
        changes = {**(mapping or {}), **values}
        checked_metadata({key: "" if value is None else value for key, value in changes.items()})
        current = self._program.metadata
        for key, value in changes.items():
            self._machine.change_metadata(key, value)
            if value is None:
                current.pop(key, None)
            else:
                current[key] = value

    # --- changes of code, and beginning afresh ---

    def patched(self, patch_id: str) -> bool:
        """Whether this execution runs the code behind a change: False for one that was here before it.

        `if ctx.patched("new-price"): ... else: ...`; the answer stays the same for the execution's whole life.
        """
        check_name(patch_id, "patch_id")
        return self._machine.patched(patch_id, calling_line())

    def deprecate_patch(self, patch_id: str) -> None:
        """Stands where `patched` stood, once no execution from before the change is left to go the old way."""
        check_name(patch_id, "patch_id")
        self._machine.deprecate_patch(patch_id, calling_line())

    def continue_as_new(
        self,
        input: Any = None,
        *,
        workflow: str | Callable[..., Any] | None = None,
        version: str | None = None,
        queue: str | None = None,
    ) -> NoReturn:
        """End this run and begin afresh with other input and an empty history, under the same workflow id.

        Kind and queue stay what they are unless given; the version is the one registered last: this is where a
        workflow that runs for ever moves to new code. Signals that were not read move along. Never returns, whatever
        the code around it catches.
        """
        for name, given in (("version", version), ("queue", queue)):
            if given is not None:
                check_name(given, name)
        started = self._program.started
        born, had = self._program.inbox.left(started.born)
        kind, declared = (started.kind, None) if workflow is None else resolved_kind(workflow)
        self._program.continue_as_new(
            ContinueWorkflow(
                input=encode(input, field="input"),
                kind=kind,
                version=version or declared,
                queue=queue,
                depth=started.depth,
                born=born,
                had=had,
            )
        )

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody has asked this workflow to cancel."""
        return self._program.cancel_requested

    @property
    def cancel_reason(self) -> str:
        return self._program.cancel_reason

    # --- the same on every replay ---

    @property
    def random(self) -> random.Random:
        """Random numbers that come out the same on every replay. Not for queries: each number drawn changes them."""
        self._machine.check_alive()
        if self._random is None:
            seed = self._program.started.seed or self._program.execution_id
            self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        return self._random

    def uuid4(self) -> UUID:
        return UUID(int=self.random.getrandbits(128), version=4)

    @property
    def info(self) -> WorkflowInfo:
        return self._program.info

    @property
    def logger(self) -> WorkflowLogger:
        """Silent on replay; every record names the execution."""
        if self._logger is None:
            self._logger = WorkflowLogger(self._program)
        return self._logger


@lru_cache(maxsize=4096)
def _step_facts(fn: Callable[..., Any]) -> tuple[str, Any]:
    """The name of a step function, and what it says it returns: anything, if that is nothing or unresolvable."""
    name = str(getattr(fn, "__qualname__", type(fn).__name__))[-NAME_BYTES:]
    definition = task_definition(fn)
    if definition is not None:
        return name, definition.result_type
    from typing import get_type_hints  # noqa: PLC0415 - only for functions that are seen for the first time

    try:
        return name, get_type_hints(fn).get("return", Any)
    except Exception:  # noqa: BLE001 - an annotation that can't be resolved is no reason to refuse the step
        return name, Any
