"""Everything that can be asked of this engine: one `call` for all operations of the table.

A change of state is an `Operation` class marked with `decides(Request)`: it is submitted to the group commit as it is.
Everything else, reads and what has to wait, is a method marked with `answers(Request)` on an object that has just what
it needs. A request is checked (`contract.fields.check`) before either sees it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from holdfast.config import Limits
from holdfast.contract.fields import check, large_payloads
from holdfast.contract.operation import Request
from holdfast.engine.operation import Operation
from holdfast.errors import Unsupported

A = TypeVar("A")
F = TypeVar("F", bound=Callable[..., Any])
Deciding = TypeVar("Deciding", bound=type[Operation[Any, Any]])
RequestType = type[Request[Any]]
Answering = Callable[[Any, Any], Any]
Run = Callable[[Operation[Any, Any], Any], Awaitable[Any]]

DECIDED: Final[dict[RequestType, type[Operation[Any, Any]]]] = {}
_MARK: Final = "_answers"
log = logging.getLogger("holdfast.engine")


def decides(*requests: RequestType) -> Callable[[Deciding], Deciding]:
    """Mark an operation as the meaning of these requests."""

    def mark(cls: Deciding) -> Deciding:
        DECIDED.update(dict.fromkeys(requests, cls))
        return cls

    return mark


def answers(*requests: RequestType) -> Callable[[F], F]:
    """Mark a method `(request)` or `(request, using)` as the meaning of these requests."""

    def mark(method: F) -> F:
        setattr(method, _MARK, requests)
        return method

    return mark


class LocalApi:
    """`contract.operation.Api`, in process. `nouns` are the objects with marked methods."""

    def __init__(self, run: Run, limits: Limits, nouns: Iterable[object]) -> None:
        self._limits = limits
        self._handlers: dict[type[Any], Answering] = {
            request: _submitting(run, cls) for request, cls in DECIDED.items()
        }
        for noun in nouns:
            self._handlers.update(_marked(noun))

    def call(self, request: Request[A], using: Any = None) -> Awaitable[A]:
        check(request, self._limits)
        for name, size in large_payloads(request, self._limits):
            log.warning(
                "%s has %d bytes: everything that reads this history carries it; better store it elsewhere", name, size
            )
        answer: Awaitable[A] = self._handler(request)(request, using)
        return answer

    def stream(self, request: Request[A]) -> AsyncIterator[list[A]]:
        check(request, self._limits)
        found: AsyncIterator[list[A]] = self._handler(request)(request, None)
        return found

    def knows(self, request: RequestType) -> bool:
        return request in self._handlers

    def _handler(self, request: Request[Any]) -> Answering:
        handler = self._handlers.get(type(request))
        if handler is None:
            raise Unsupported(f"this engine can't answer {type(request).__name__}")
        return handler


def _submitting(run: Run, cls: type[Operation[Any, Any]]) -> Answering:
    return lambda request, using: run(cls(request), using)


def _marked(noun: object) -> Iterator[tuple[RequestType, Answering]]:
    for name in dir(type(noun)):
        method = getattr(type(noun), name)
        requests: tuple[RequestType, ...] = getattr(method, _MARK, ())
        if requests:
            bound = getattr(noun, name)
            takes_using = "using" in method.__code__.co_varnames[: method.__code__.co_argcount]
            handler = bound if takes_using else _without_using(bound)
            yield from ((request, handler) for request in requests)


def _without_using(bound: Callable[[Any], Any]) -> Answering:
    return lambda request, _: bound(request)
