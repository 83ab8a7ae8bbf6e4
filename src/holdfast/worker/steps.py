"""Running steps: user functions called inline by the worker that holds the execution."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.frontends.python.failures import failure_of
from holdfast.model.commands import StepOutcome
from holdfast.model.payloads import encode
from holdfast.replay.machine import StepRequest
from holdfast.worker.host import Host


class RunningStep:
    """One step in this process. `request` is renewed when the program was replayed and asks for the same step again."""

    __slots__ = ("_done", "_host", "_stopped", "_task", "request")

    def __init__(self, host: Host, request: StepRequest, done: Callable[[RunningStep, StepOutcome], None]) -> None:
        self._host = host
        self._done = done
        self.request = request
        self._stopped = False
        self._task = host.loop.create_task(self._run(), name=f"step {request.name}")

    def cancel(self) -> None:
        self._stopped = True
        self._task.cancel()

    async def _run(self) -> None:
        request = self.request
        fn, args = request.run
        started_at = self._host.now()
        attempt = 1
        while True:
            try:
                result = encode(await call(self._host, fn, args), field=f"result of step {request.name}")
            except HoldfastError as error:
                # Ours, or raised through us: the value can't be kept, however often the step is run.
                self._finish(attempt, started_at, failure=failure_of(error))
                return
            except BaseException as error:
                # Also CancelledError or SystemExit of its own making; but not when it was us, or the end of the loop.
                if self._stopped or self._host.loop.is_closed():
                    raise
                failure = failure_of(error)
                if not request.retry.allows(failure, attempt):
                    self._finish(attempt, started_at, failure=failure)
                    return
                await asyncio.sleep(request.retry.delay_s(attempt, request.name))
                attempt += 1
                continue
            self._finish(attempt, started_at, result=result)
            return

    def _finish(self, attempts: int, started_at: int, **outcome: Any) -> None:
        request = self.request
        self._done(
            self,
            StepOutcome(
                up_to=request.up_to,
                step_no=request.step_no,
                name=request.name,
                attempts=attempts,
                started_at=started_at,
                finished_at=self._host.now(),
                line=request.line,
                **outcome,
            ),
        )


async def call(host: Host, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call a user's function: `async def` on the event loop, `def` in a thread."""
    if iscoroutinefunction(fn):
        return await fn(*args)
    result = await host.threads.call(host.loop, fn, args)
    # A `def` (or partial, or callable object) may hand back a coroutine of its own.
    return await result if asyncio.iscoroutine(result) else result
