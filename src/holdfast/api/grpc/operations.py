"""WorkflowDispatch: a method for every operation of the table that has one."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from holdfast.api.grpc.calls import Call, Guard, Method
from holdfast.contract.operation import Api, Operation
from holdfast.contract.table import TABLE
from holdfast.model.keys import Role
from holdfast.wire.grpc.method_codec import method_codec

CHECKED_S: Final = 1.0


def methods(api: Api, guard: Guard) -> Iterator[Method]:
    for operation in TABLE:
        if not operation.no_rpc:
            yield _streaming(api, guard, operation) if operation.streams else _method(api, guard, operation)


def _method(api: Api, guard: Guard, operation: Operation) -> Method:
    codec = method_codec(operation)

    async def handle(call: Call, message: Any) -> Any:
        request = codec.read_request(message, call.org, key=call.request_id, by=call.principal, address=call.address)
        if not operation.audited or call.principal.key_id is None:
            return codec.write_answer(await api.call(request))
        subject = getattr(request, "workflow_execution_id", "")
        async with guard.audited(call.principal, operation.name, subject, address=call.address):
            return codec.write_answer(await api.call(request))

    role = operation.role if operation.role is not None else Role.READER
    return Method(operation.rpc, codec.request, codec.response, role, handle)


def _streaming(api: Api, guard: Guard, operation: Operation) -> Method:
    codec = method_codec(operation)

    async def handle(call: Call, message: Any) -> AsyncIterator[Any]:
        request = codec.read_request(message, call.org, key=None, by=call.principal, address=call.address)
        checked = time.monotonic()
        async for records in api.stream(request):
            if time.monotonic() - checked > CHECKED_S:
                # A key that is revoked ends what it has opened.
                await guard.check_again(call.principal)
                checked = time.monotonic()
            for record in records:
                yield codec.write_answer(record)

    role = operation.role if operation.role is not None else Role.READER
    return Method(operation.rpc, codec.request, codec.response, role, handle, streams=True)
