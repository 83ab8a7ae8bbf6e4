"""What a mocked workflow is fed: outcomes of its tasks, steps and children, queued per target."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from holdfast.errors import InvalidRequest
from holdfast.model.durations import Duration, duration_s
from holdfast.model.failures import failure_of
from holdfast.model.payloads import decode_args, encode
from holdfast.model.values import MICRO, NULL, Failure, Payload
from holdfast.replay.definition import TaskDefinition, definition_of, task_definition

Target = Callable[..., Any] | str


class Settled(msgspec.Struct, frozen=True):
    """How one call ends: with a result, or with a failure (`timeout` names the limit that was passed)."""

    result: Payload = NULL
    failure: Failure | None = None
    timeout: str = ""


class Outcome:
    """What was fed for one call, or (`lasting`) for every call."""

    __slots__ = ("_value", "after_us", "lasting", "timeout")

    def __init__(self, value: Any, after: Duration, timeout: str = "") -> None:
        self._value = value
        self.after_us = int(duration_s(after, "after") * MICRO)
        self.lasting = callable(value) and not isinstance(value, BaseException)
        self.timeout = timeout

    def settle(self, name: str, args: tuple[Any, ...]) -> Settled:
        value = self._value
        if self.lasting:
            try:
                value = value(*args)
            except Exception as error:  # noqa: BLE001 - what a computed outcome raises is the failure it stands for
                value = error
            if asyncio.iscoroutine(value):
                value.close()
                raise InvalidRequest(
                    f"the result fed for {name!r} is computed by an async function: give a plain one", field="value"
                )
        if isinstance(value, BaseException):
            return Settled(failure=failure_of(value), timeout=self.timeout)
        return Settled(result=encode(value, field=f"result of {name}"))


class Feed:
    """The outcomes of one target. A target is a function or a name: a task's kind, a step's name, a child's kind."""

    __slots__ = ("_fn", "_outcomes", "definition", "name")

    def __init__(self, target: Target) -> None:
        self.definition: TaskDefinition | None = None
        self._fn: Callable[..., Any] | None = None
        self._outcomes: deque[Outcome] = deque()
        if isinstance(target, str):
            self.name = target
            return
        if not callable(target):
            raise InvalidRequest(
                f"results are fed for a function or a name, not for {type(target).__name__}", field="target"
            )
        self._fn = target
        self.definition = task_definition(target)
        known = self.definition or definition_of(target)
        self.name = known.kind if known is not None else str(getattr(target, "__qualname__", target))

    def is_for(self, target: Target) -> bool:
        return self.name == target if isinstance(target, str) else self._fn is not None and self._fn == target

    def add(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)

    def take(self) -> Outcome | None:
        """The next outcome. One that computes stays for the calls to come, unless others were queued behind it."""
        if not self._outcomes:
            return None
        first = self._outcomes[0]
        return first if first.lasting and len(self._outcomes) == 1 else self._outcomes.popleft()

    @property
    def unused(self) -> int:
        return sum(not outcome.lasting for outcome in self._outcomes)

    def arguments(self, payload: Payload) -> tuple[Any, ...]:
        """A task's arguments: typed where its function is known, else as they went over the queue."""
        return arguments_of(payload, self.definition)


class Feeds:
    """All that was fed, per role: task, step, child."""

    def __init__(self) -> None:
        self._feeds: list[Feed] = []

    def of(self, target: Target) -> Feed:
        """The feed of this target, made if it is not there."""
        found = self.find(target)
        if found is None:
            found = Feed(target)
            self._feeds.append(found)
        return found

    def find(self, *targets: Target) -> Feed | None:
        return next((feed for feed in self._feeds for target in targets if feed.is_for(target)), None)

    @property
    def unused(self) -> dict[str, int]:
        return {feed.name: feed.unused for feed in self._feeds if feed.unused}


def arguments_of(payload: Payload, definition: TaskDefinition | None) -> tuple[Any, ...]:
    if definition is not None:
        return tuple(decode_args(payload, definition.parameter_types))
    return tuple(decode_args(payload, (Any,) * 64))


def delay_of(after: Duration) -> timedelta:
    return timedelta(seconds=duration_s(after, "after"))
