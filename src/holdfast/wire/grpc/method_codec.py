"""The gRPC methods of the table of operations: message to request, answer to message, by the generic codec."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from holdfast.contract.operation import Operation
from holdfast.contract.principals import Principal
from holdfast.wire.grpc import holdfast_pb2 as pb
from holdfast.wire.grpc.message_codec import MessageCodec, codec_of
from holdfast.wire.grpc.names import ATTRIBUTES, KEYS, ORG, SERVICE

_METHODS: Final = pb.DESCRIPTOR.services_by_name[SERVICE].methods_by_name


class MethodCodec:
    """Both messages of an operation. `wrapped` is the only field of an answer that has its record in a message."""

    def __init__(self, operation: Operation) -> None:
        method = _METHODS[operation.rpc]
        self.request = getattr(pb, method.input_type.name)
        self.response = getattr(pb, method.output_type.name)
        self._operation = operation
        self._asked = _codec(operation.request, self.request, **{ORG: "org"})
        self._has_key = "request_id" in operation.request.__struct_fields__
        self._caller_fields = {"by", "address"} & set(operation.request.__struct_fields__)
        self._wrapped, record = _record(self.response, operation.answer)
        self._answer = None if operation.answer is None else _codec(operation.answer, record)

    # --- the server's side ---

    def read_request(self, message: Any, org: str, *, key: str | None, by: Principal | None, address: str) -> Any:
        """`key` is the idempotency key of the metadata."""
        others: dict[str, Any] = {"org": org}
        if self._has_key:
            others["request_id"] = _key_of(message) or key
        caller = {"by": by, "address": address}
        others.update({name: caller[name] for name in self._caller_fields})
        return self._asked.read(message, **others)

    def write_answer(self, answer: Any) -> Any:
        if self._answer is None:
            return self.response()
        made = self._answer.write(answer)
        return made if self._wrapped is None else self.response(**{self._wrapped: made})

    # --- the client's side ---

    def write_request(self, request: Any) -> Any:
        return self._asked.write(request)

    def set_key(self, message: Any, key: str) -> None:
        """Name a call, so that it may be made again."""
        name = next(name for name in KEYS if name in self.request.DESCRIPTOR.fields_by_name)
        setattr(message, name, key)

    def read_answer(self, message: Any) -> Any:
        if self._answer is None:
            return None
        return self._answer.read(message if self._wrapped is None else getattr(message, self._wrapped))


def _codec(struct: type[msgspec.Struct], message: Any, **others: str) -> MessageCodec:
    attributes = {**ATTRIBUTES.get(message.DESCRIPTOR.name, {}), **others}
    return MessageCodec(struct, message, attributes) if attributes else codec_of(struct, message)


def _record(response: Any, answer: Any) -> tuple[str | None, Any]:
    fields = response.DESCRIPTOR.fields
    if answer is not None and len(fields) == 1 and fields[0].message_type is not None and not fields[0].is_repeated:
        return fields[0].name, getattr(pb, fields[0].message_type.name)
    return None, response


@cache
def method_codec(operation: Operation) -> MethodCodec:
    return MethodCodec(operation)


def _key_of(message: Any) -> str | None:
    for name in KEYS:
        if name in message.DESCRIPTOR.fields_by_name and message.HasField(name):
            return str(getattr(message, name))
    return None
