"""`ctx.wait_until`: waiting until something the workflow knows has become true.

A condition is looked at when it is made and whenever the loop has gone quiet, in order of creation; the one that is
true goes on at once, before the next is looked at, so that it finds what it waited for. All of it is the same on every
replay, so nothing is recorded but the timer of a time-out.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from holdfast import errors
from holdfast.frontends.python.futures import CallbackTimer, DurableFuture
from holdfast.frontends.python.loop import BusyLoop, DeterministicLoop
from holdfast.replay.machine import Machine

MAX_SETTLED = 100_000  # in one go; beyond that the conditions are taken to make each other true for ever


class ConditionFuture(DurableFuture[None]):
    """Settled when its predicate is true, or by its timer."""

    __slots__ = ("_predicate", "_timer", "_workflow_loop")
    KIND = "condition"

    def __init__(self, loop: DeterministicLoop, machine: Machine, predicate: Callable[[], Any]) -> None:
        super().__init__(loop, machine, _name(predicate))
        self._workflow_loop = loop
        self._predicate = predicate
        self._timer: CallbackTimer | None = None

    def watch(self, limit_us: int | None) -> None:
        """Look now; wait if it is not so."""
        self._machine.check_alive()
        if self.check():
            return
        self._machine.watch(self)
        if limit_us is not None:
            fire_at = self._machine.now + limit_us
            self._timer = CallbackTimer(self._machine, f"timeout of {self.name}", fire_at, self._time_out, self.line)

    def check(self) -> bool:
        """Whether the wait is over: the predicate is true, or has failed."""
        try:
            if not self._holds():
                return False
        except (errors.ControlFlow, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a predicate raises belongs to its wait
            self._end()
            self._fail(_raisable(error))
        else:
            self._end()
            self.set_result(None)
        return True

    def _holds(self) -> bool:
        self._machine.frozen = True
        try:
            answer = self._workflow_loop.inside(self._predicate)
        except errors.QueryNotReadOnly as error:
            raise errors.InvalidRequest(
                f"the condition at {self.line} must only look: it asked for something", field="predicate"
            ) from error
        finally:
            self._machine.frozen = False
        if inspect.isawaitable(answer):
            if asyncio.iscoroutine(answer):
                answer.close()
            raise errors.InvalidRequest(
                f"the condition at {self.line} gave something to await: use a plain function that answers at once",
                field="predicate",
            )
        return bool(answer)

    def _end(self) -> None:
        self._machine.unwatch(self)
        if self._timer is not None:
            self._timer.cancel()

    def _time_out(self) -> None:
        self._machine.unwatch(self)
        self._fail(errors.ConditionTimeout(f"{self.name} at {self.line} did not become true in time"))

    def _take_back(self) -> None:
        self._end()


def settle_conditions(machine: Machine, loop: DeterministicLoop) -> None:
    """Let those go on whose predicate is true, until none is."""
    settled = -1
    total = 0
    while settled:
        settled = 0
        for condition in machine.conditions:
            if not condition.done() and condition.check():
                loop.drain()
                settled += 1
        total += settled
        if total > MAX_SETTLED:
            raise BusyLoop(
                f"conditions came true {total:,} times without anything durable in between "
                f"({'; '.join(loop.blocked_on()[:3])}): they make each other true for ever",
                call="ctx.wait_until",
            )


def _name(predicate: Callable[[], Any]) -> str:
    name = str(getattr(predicate, "__name__", "condition"))
    return "condition" if name == "<lambda>" else name


def _raisable(error: BaseException) -> BaseException:
    """Futures can't carry StopIteration, which a bare `next()` raises; it would end the coroutine that awaits."""
    if not isinstance(error, StopIteration):
        return error
    carried = RuntimeError("the condition raised StopIteration")
    carried.__cause__ = error
    return carried
