"""What `ctx` gives back: futures of the workflow's loop that stand for something durable.

Each is its own slot in the machine: the outcome's event settles it, cancelling it takes the command back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, ClassVar, TypeVar

from holdfast import errors
from holdfast.frontends.python.loop import DeterministicLoop, WorkflowFuture
from holdfast.frontends.python.source_lines import calling_line
from holdfast.model import events as e
from holdfast.model.payloads import decode
from holdfast.model.values import Payload
from holdfast.replay.machine import Machine

T = TypeVar("T")


class DurableFuture(WorkflowFuture[T]):
    """A future settled by the history."""

    __slots__ = ("_hint", "_machine", "awaited", "line", "name", "number", "until_at")

    KIND: ClassVar[str] = ""

    def __init__(self, loop: DeterministicLoop, machine: Machine, name: str, hint: Any = Any) -> None:
        asyncio.Future.__init__(self, loop=loop)
        self.ordinal = loop.next_ordinal()
        self.about = name
        self.name = name
        self.line = calling_line(2)  # whoever makes one is a method of `ctx`, or called by one
        self.awaited = False
        self.until_at: int | None = None
        self.number = 0
        self._machine = machine
        self._hint = hint

    @property
    def id(self) -> str:
        """What a composition's Outcome calls this item: the same on every replay."""
        return f"{self.KIND}:{self.number or self.name}"

    def cancel(self, msg: Any | None = None) -> bool:
        if not self.done():
            self._take_back()
        return super().cancel(msg)

    def settle(self, body: e.EventBody) -> None:
        """The event of its outcome has come."""
        raise NotImplementedError

    def _take_back(self) -> None:
        raise NotImplementedError

    def give_up(self) -> None:
        """Take the command back as `cancel` does, but stay open for an outcome that was recorded before that."""
        self._take_back()
        self._machine.listen(self.KIND, self.number, self)

    def stop_listening(self) -> None:
        """Nobody wants to know any more whether such an outcome was recorded."""
        self._machine.unlisten(self.KIND, self.number)

    def _give(self, payload: Payload) -> None:
        if self.done():
            return
        try:
            self.set_result(decode(payload, self._hint, field=self.name))
        except errors.PayloadNotDecodable as error:
            self.set_exception(error)

    def _fail(self, error: BaseException) -> None:
        if not self.done():
            self.set_exception(error)


class WorkFuture(DurableFuture[T]):
    """Work that is lost if the workflow ends without having looked at it even once."""

    __slots__ = ()

    def add_done_callback(self, fn: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        """Whoever awaits it comes by here: a task, gather, wait, a composition."""
        self.awaited = True
        asyncio.Future.add_done_callback(self, fn, context=context)


class TaskFuture(WorkFuture[T]):
    __slots__ = ()
    KIND = "task"

    def settle(self, body: e.EventBody) -> None:
        if isinstance(body, e.TaskCompleted):
            self._give(body.result)
        elif isinstance(body, e.TaskFailed):
            failure = body.failure
            kind = errors.TaskTimedOut if body.timeout else errors.TaskFailed
            self._fail(
                kind(
                    f"task {self.name!r} failed after {body.attempt} attempt(s): {failure.type}: {failure.message}",
                    error_type=failure.type,
                    attempts=body.attempt,
                    failure=failure,
                )
            )

    def _take_back(self) -> None:
        self._machine.cancel_task(self.number, self.line)


class StepFuture(WorkFuture[T]):
    __slots__ = ()
    KIND = "step"

    def settle(self, body: e.EventBody) -> None:
        if isinstance(body, e.StepCompleted):
            self._give(body.result)
        elif isinstance(body, e.StepFailed):
            failure = body.failure
            self._fail(
                errors.StepFailed(
                    f"step {self.name!r} failed after {body.attempts} attempt(s): {failure.type}: {failure.message}",
                    error_type=failure.type,
                    attempts=body.attempts,
                    failure=failure,
                )
            )

    def _take_back(self) -> None:
        self._machine.drop_step(self.number)


class TimerFuture(DurableFuture[None]):
    __slots__ = ()
    KIND = "timer"

    def settle(self, body: e.EventBody) -> None:
        if not self.done():
            self.set_result(None)

    def _take_back(self) -> None:
        self._machine.cancel_timer(self.number, self.line)


class SignalFuture(DurableFuture[T]):
    """Settled by the next signal of its name, or by its timer."""

    __slots__ = ("timer",)
    KIND = "signal"

    timer: CallbackTimer | None

    def settle_signal(self, value: Payload) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self._give(value)

    def time_out(self) -> None:
        self._machine.drop_waiter(self.name, self)
        self._fail(errors.SignalTimeout(f"no signal {self.name!r} came in time", signal_name=self.name))

    def _take_back(self) -> None:
        self._machine.drop_waiter(self.name, self)
        if self.timer is not None:
            self.timer.cancel()


class ExternalSignalFuture(DurableFuture[None]):
    """Settled when the signal has reached another execution, or could not."""

    __slots__ = ("target",)
    KIND = "external_signal"

    target: str

    def settle(self, body: e.EventBody) -> None:
        if isinstance(body, e.ExternalSignalFailed):
            failure = body.failure
            self._fail(
                errors.ExternalSignalFailed(
                    f"signal {self.name!r} did not reach {self.target!r}: {failure.message}",
                    error_type=failure.type,
                    target=self.target,
                    failure=failure,
                )
            )
        elif not self.done():
            self.set_result(None)

    def _take_back(self) -> None:
        self._machine.forget_slot(self.KIND, self.number)


class CallbackTimer:
    """A durable timer that calls back: asyncio's own timers, and the time-outs of waits."""

    __slots__ = ("_fire", "_machine", "line", "name", "number", "until_at")

    def __init__(self, machine: Machine, name: str, fire_at: int, fire: Callable[[], None], line: str) -> None:
        self._machine = machine
        self._fire = fire
        self.name = name
        self.line = line
        self.until_at: int | None = fire_at
        self.number = machine.start_timer(fire_at, line, self)

    def settle(self, body: e.EventBody) -> None:
        self._fire()

    def cancel(self) -> None:
        self._machine.cancel_timer(self.number, self.line)
