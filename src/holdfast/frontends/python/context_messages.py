"""The part of `ctx` that deals with the outside: promises, events, messages, broadcasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from holdfast.errors import InvalidRequest
from holdfast.frontends.python.definitions import Duration, time_limit_s
from holdfast.frontends.python.futures import DurableFuture
from holdfast.frontends.python.messages import (
    LookBack,
    PromiseFuture,
    Subject,
    checked_where,
    make_promise,
    start_wait,
)
from holdfast.frontends.python.source_lines import calling_line
from holdfast.model.commands import Publish, ThrowBroadcast
from holdfast.model.payloads import encode
from holdfast.model.validation import check_name
from holdfast.model.values import DeliveryMode

if TYPE_CHECKING:
    from holdfast.frontends.python.program import PythonProgram
    from holdfast.replay.machine import Machine

T = TypeVar("T")


class OutsideWorld:
    """What a WorkflowContext can ask of the outside and tell it."""

    __slots__ = ()

    _program: PythonProgram
    _machine: Machine

    # --- promises ---

    @overload
    def promise(
        self, name: str, type_hint: type[T], *, timeout: Duration | None = None, event_key: str | None = None
    ) -> PromiseFuture[T]: ...
    @overload
    def promise(
        self, name: str, type_hint: Any = ..., *, timeout: Duration | None = None, event_key: str | None = None
    ) -> PromiseFuture[Any]: ...
    def promise(
        self, name: str, type_hint: Any = Any, *, timeout: Duration | None = None, event_key: str | None = None
    ) -> PromiseFuture[Any]:
        """A value that somebody outside will give, once. Its name is its own within the execution.

        Hand out its `id` or, to somebody who must not touch anything else, its `token`; then await it. The first to
        settle it counts, for ever. Rejected: PromiseRejected. Late: PromiseTimeout. With `event_key` the next event
        published under that key settles it, too. A value that does not fit `type_hint` does not settle it: whoever
        gives it gets PromiseValueInvalid.
        """
        return make_promise(self._program, name, type_hint, timeout=timeout, event_key=event_key)

    # --- events and messages ---

    @overload
    def wait_for_event(
        self,
        key: str,
        type_hint: type[T],
        *,
        where: str | None = None,
        timeout: Duration | None = None,
        look_back: LookBack = None,
        consume_on_read: bool = False,
    ) -> DurableFuture[T]: ...
    @overload
    def wait_for_event(
        self,
        key: str,
        type_hint: Any = ...,
        *,
        where: str | None = None,
        timeout: Duration | None = None,
        look_back: LookBack = None,
        consume_on_read: bool = False,
    ) -> DurableFuture[Any]: ...
    def wait_for_event(
        self,
        key: str,
        type_hint: Any = Any,
        *,
        where: str | None = None,
        timeout: Duration | None = None,
        look_back: LookBack = None,
        consume_on_read: bool = False,
    ) -> DurableFuture[Any]:
        """The data of the next event published under this key, if it satisfies `where`, which sees it as `input`.

        What was published since this execution began counts, so that an event can't be too early; never the same one
        twice. `look_back=False`: only what comes from now on; `True`: all that is kept; seconds, a timedelta or a
        datetime: what was published since then. With `consume_on_read` nobody else gets it. Late: EventTimeout.
        """
        check_name(key, "key")
        return start_wait(
            self._program,
            Subject("event", key, where=checked_where(where)),
            type_hint,
            timeout=timeout,
            look_back=look_back,
            consume=bool(consume_on_read),
        )

    @overload
    def wait_for_message(
        self,
        name: str,
        correlation_key: str,
        type_hint: type[T],
        *,
        timeout: Duration | None = None,
        look_back: LookBack = None,
    ) -> DurableFuture[T]: ...
    @overload
    def wait_for_message(
        self,
        name: str,
        correlation_key: str,
        type_hint: Any = ...,
        *,
        timeout: Duration | None = None,
        look_back: LookBack = None,
    ) -> DurableFuture[Any]: ...
    def wait_for_message(
        self,
        name: str,
        correlation_key: str,
        type_hint: Any = Any,
        *,
        timeout: Duration | None = None,
        look_back: LookBack = None,
    ) -> DurableFuture[Any]:
        """The next message of this name for this correlation key; exactly one wait gets it. `look_back` as with
        `wait_for_event`. Late: EventTimeout."""
        check_name(name, "name")
        check_name(correlation_key, "correlation_key")
        subject = Subject("message", name, correlation=correlation_key)
        return start_wait(self._program, subject, type_hint, timeout=timeout, look_back=look_back, consume=True)

    def publish_event(
        self,
        key: str,
        data: Any = None,
        *,
        expire_after: Duration | None = None,
        delivery: DeliveryMode | str = DeliveryMode.WAITERS_AND_FUTURE,
        consume_on_read: bool = False,
    ) -> None:
        """Publish an event when this turn is recorded: to everybody who waits for its key, and kept for those who will
        look back, unless `delivery` says otherwise. With `consume_on_read` the first to get it is the only one."""
        check_name(key, "key")
        self._machine.send(
            Publish(
                key=key,
                data=encode(data, field="data"),
                expire_after_s=None if expire_after is None else time_limit_s(expire_after, "expire_after"),
                delivery=_delivery(delivery),
                consume=bool(consume_on_read),
                line=calling_line(),
            )
        )

    def send_message(self, name: str, correlation_key: str, data: Any = None) -> None:
        """Send a message when this turn is recorded: to one wait, now or later."""
        check_name(name, "name")
        check_name(correlation_key, "correlation_key")
        self._machine.send(
            Publish(key=name, correlation=correlation_key, data=encode(data, field="data"), line=calling_line())
        )

    # --- broadcasts ---

    def wait_for_broadcast(self, name: str, *, timeout: Duration | None = None) -> DurableFuture[None]:
        """Wait for the next broadcast of this name: one from before is over. Late: EventTimeout."""
        check_name(name, "name")
        return start_wait(self._program, Subject("broadcast", name), None, timeout=timeout)

    def broadcast(self, name: str) -> None:
        """Wake everybody who waits for this name, when this turn is recorded."""
        check_name(name, "name")
        self._machine.send(ThrowBroadcast(name=name, line=calling_line()))


def _delivery(given: str) -> DeliveryMode:
    for choice in DeliveryMode:
        if choice == given:
            return choice
    raise InvalidRequest(f"delivery must be one of {', '.join(DeliveryMode)}, not {given!r:.50}", field="delivery")
