"""`contract.operation.Api` over HTTP: any operation of the table, by one procedure.

A call that changes something carries a request id, made here if the caller gave none, so that a repeat after a lost
connection is the same call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, NoReturn, TypeVar

from msgspec import structs

from holdfast.client.remote.caller import Caller, decoded, new_request_id
from holdfast.contract.fields import FOREVER
from holdfast.contract.operation import GET, OPERATIONS, Request
from holdfast.errors import InvalidRequest
from holdfast.wire.rest.request_shapes import shape_of

A = TypeVar("A")
WAIT_S: Final = 25.0
END: Final = "end"


def refuse_using() -> NoReturn:
    raise InvalidRequest(
        "only an engine in the same process can join your transaction: use Engine on this database", field="using"
    )


class HttpApi:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def call(self, request: Request[A], using: Any = None) -> A:
        if using is not None:
            refuse_using()
        if getattr(request, "wait", 0.0) == FOREVER:
            return await self._patiently(structs.replace(request, wait=WAIT_S))
        operation = OPERATIONS[type(request)]
        shape = shape_of(operation)
        if operation.method == GET:
            found: A = await self._caller.get(
                shape.target(request), operation.answer, shape.parameters(request), getattr(request, "wait", 0.0)
            )
            return found
        made = new_request_id() if shape.has_request_id and request.request_id is None else None  # type: ignore[attr-defined]
        body = shape.content(request, **({"request_id": made} if made else {}))
        repeatable = operation.repeatable or shape.has_request_id
        wait_s = getattr(request, "wait", None if operation.waits else 0.0)
        answer = await self._caller.send(
            operation.method, shape.target(request), body, operation.answer, repeatable=repeatable, wait_s=wait_s
        )
        answered: A = without_key(answer) if made else answer
        return answered

    async def _patiently(self, request: Request[A]) -> A:
        """Ask again until there is an answer: no server keeps a call for ever."""
        while True:
            answer = await self.call(request)
            if request.is_answered_by(answer):
                return answer

    async def stream(self, request: Request[A]) -> AsyncIterator[list[A]]:
        operation = OPERATIONS[type(request)]
        shape, kinds = shape_of(operation), operation.events
        last = kinds[-1] if kinds else END
        async for event in self._caller.events(shape.target(request), shape.parameters(request), last=last):
            # A newer server may have other kinds, too.
            if event.kind in kinds or (not kinds and event.kind != END):
                yield [decoded(event.data, operation.answer)]


def without_key(answer: Any) -> Any:
    """A key that the caller did not give is none of the answer."""
    if not hasattr(answer, "idempotency_key_used"):
        return answer
    return structs.replace(answer, idempotency_key_used=False, idempotency_key_new=False)
