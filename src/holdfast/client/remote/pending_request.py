"""A request that waits for its answer from the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.contract import workers as wk
from holdfast.errors import EngineStopped, HoldfastError, Unavailable
from holdfast.model.values import Token
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc.failures import error as error_in
from holdfast.transport.grpc.reports import turn_answer

Attempt = tuple[str, int, int]
"""Execution, task number, attempt."""
About = tuple[str, Token] | Attempt
"""The lease or the attempt that a report is about."""


class PendingRequest:
    """A request that waits for its answer. `about` is the lease or the attempt that it reports on; on an attempt it may
    have to be shown again. `read` makes the result from the answer."""

    __slots__ = ("about", "future", "message", "read")

    def __init__(
        self,
        future: Any,
        message: pb.Request,
        about: About | None = None,
        read: Callable[[pb.Answer], Any] | None = None,
    ) -> None:
        self.future = future
        self.message = message
        self.about = about
        self.read = read

    def settle(self, answer: pb.Answer) -> None:
        future = self.future
        if future.done():
            return
        error = error_of_answer(answer)
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer if self.read is None else self.read(answer))


def is_attempt(about: About | None) -> bool:
    return about is not None and len(about) == 3


def error_of_answer(answer: pb.Answer) -> HoldfastError | None:
    if not answer.HasField("error"):
        return None
    error = error_in(answer.error)
    # Theirs has stopped, not ours.
    return Unavailable(error.message) if isinstance(error, EngineStopped) else error


def turn_of(answer: pb.Answer) -> wk.TurnAnswer:
    return turn_answer(answer.turn)
