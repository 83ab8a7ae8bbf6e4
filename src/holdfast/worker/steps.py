"""Running steps: user functions called inline by the worker that holds the execution."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import CO_COROUTINE, iscoroutinefunction
from typing import Any, Protocol

from holdfast.errors import HoldfastError
from holdfast.frontends.python.failures import failure_of
from holdfast.model.events import StepCompleted, StepFailed, StepFinished
from holdfast.model.payloads import encode
from holdfast.model.values import Failure, Payload
from holdfast.replay.program import StepRequest
from holdfast.telemetry.logs import RUNNING
from holdfast.telemetry.traces import Attributes, Tracing
from holdfast.worker.runtime import WorkerRuntime


class Owner(Protocol):
    """The execution whose step it is."""

    @property
    def id(self) -> str: ...

    @property
    def workflow_id(self) -> str: ...

    @property
    def kind(self) -> str: ...

    def step_done(self, step: RunningStep, outcome: StepFinished) -> None: ...


class RunningStep:
    """One step in this process. `request` is renewed when the program was replayed and asks for the same step again."""

    __slots__ = ("_attempt", "_owner", "_runtime", "_stopped", "_task", "request")

    def __init__(self, runtime: WorkerRuntime, owner: Owner, request: StepRequest) -> None:
        self._runtime = runtime
        self._owner = owner
        self._attempt = 1
        self.request = request
        self._stopped = False
        self._task = runtime.loop.create_task(self._run(), context=runtime.context.copy())

    @property
    def job(self) -> asyncio.Task[None]:
        return self._task

    def cancel(self) -> None:
        self._stopped = True
        self._task.cancel()

    def log_fields(self) -> dict[str, Any]:
        """What a record that the body logs is about."""
        return {
            "org": self._runtime.org,
            "workflow_execution_id": self._owner.id,
            "workflow_id": self._owner.workflow_id,
            "workflow_kind": self._owner.kind,
            "step": self.request.name,
            "attempt": self._attempt,
            "session": self._runtime.session,
        }

    def _traced(self, fn: Callable[..., Any], tracing: Tracing) -> Callable[..., Any]:
        owner, request = self._owner, self.request
        named: Attributes = {
            "holdfast.org": self._runtime.org,
            "holdfast.workflow_id": owner.workflow_id,
            "holdfast.workflow_kind": owner.kind,
            "holdfast.step": request.name,
        }
        return tracing.step(fn, owner.id, request.step_no, named)

    async def _run(self) -> None:
        runtime, request = self._runtime, self.request
        fn, args = request.run
        fn = runtime.step_body(fn)
        if runtime.tracing is not None:
            fn = self._traced(fn, runtime.tracing)
        RUNNING.set(self)
        started_at = runtime.now()
        attempt = 1
        while True:
            failure, again = None, False
            try:
                result = encode(
                    await fn(*args) if is_async(fn) else await call_plain(runtime, fn, args),
                    field=f"result of step {request.name}",
                )
            except HoldfastError as error:
                # Ours, or raised through us: the value can't be kept, however often the step is run.
                failure = failure_of(error)
            except BaseException as error:
                # Also CancelledError or SystemExit of its own making; but not when it was us, or the end of the loop.
                if self._stopped or runtime.loop.is_closed():
                    raise
                failure = failure_of(error)
                again = request.retry.allows(failure, attempt)
            # Not while the exception is handled: the workflow goes on from here, and what it raises would refer to it.
            if failure is None:
                RUNNING.set(None)
                self._completed(attempt, started_at, result)
                return
            if not again:
                RUNNING.set(None)
                self._failed(attempt, started_at, failure)
                return
            await runtime.sleep(request.retry.delay_s(attempt, request.name))
            attempt += 1
            self._attempt = attempt

    def _completed(self, attempts: int, started_at: int, result: Payload) -> None:
        request = self.request
        self._owner.step_done(
            self,
            StepCompleted(
                up_to=request.up_to,
                step_no=request.step_no,
                name=request.name,
                result=result,
                attempts=attempts,
                started_at=started_at,
                finished_at=self._runtime.now(),
                line=request.line,
            ),
        )

    def _failed(self, attempts: int, started_at: int, failure: Failure) -> None:
        request = self.request
        self._owner.step_done(
            self,
            StepFailed(
                up_to=request.up_to,
                step_no=request.step_no,
                name=request.name,
                failure=failure,
                attempts=attempts,
                started_at=started_at,
                finished_at=self._runtime.now(),
                line=request.line,
            ),
        )


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine. A plain function's own flags say so at a tenth of what `inspect` costs."""
    code = getattr(fn, "__code__", None)
    return bool(code.co_flags & CO_COROUTINE) if code is not None else iscoroutinefunction(fn)


async def call_plain(runtime: WorkerRuntime, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call a `def` in a thread. It (or a partial, or a callable object) may hand back a coroutine of its own."""
    result = await runtime.threads.call(runtime.loop, fn, args)
    return await result if asyncio.iscoroutine(result) else result
