"""The gRPC services: methods, messages, and of each field the number, the type and whether it repeats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2

from holdfast.wire.grpc import holdfast_pb2

Field = descriptor_pb2.FieldDescriptorProto


def grpc_messages() -> dict[str, str]:
    file = descriptor_pb2.FileDescriptorProto()
    holdfast_pb2.DESCRIPTOR.CopyToProto(file)
    lines = [f"package {file.package}"]
    for service in file.service:
        lines += ["", f"service {service.name}", *(f"    {_method(method)}" for method in service.method)]
    for enum in sorted(file.enum_type, key=lambda enum: str(enum.name)):
        lines += ["", *_enum(enum)]
    for message in sorted(file.message_type, key=lambda message: str(message.name)):
        lines += ["", *_message(message)]
    return {"proto.txt": "\n".join(lines) + "\n"}


def _method(method: Any) -> str:
    asks = "stream " * method.client_streaming + _short(method.input_type)
    answers = "stream " * method.server_streaming + _short(method.output_type)
    return f"{method.name}({asks}) -> {answers}"


def _enum(enum: Any) -> Iterator[str]:
    yield f"enum {enum.name}"
    for value in sorted(enum.value, key=lambda value: int(value.number)):
        yield f"    {value.number} {value.name}"


def _message(message: Any) -> Iterator[str]:
    yield f"message {message.name}"
    maps = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    for field in sorted(message.field, key=lambda field: int(field.number)):
        yield f"    {field.number} {_type(field, maps)} {field.name}{_oneof(field, message)}"
    for span in message.reserved_range:
        yield f"    reserved {span.start} to {span.end - 1}"
    for name in message.reserved_name:
        yield f"    reserved {name}"
    for nested in [*message.enum_type, *(nested for nested in message.nested_type if nested.name not in maps)]:
        lines = _enum(nested) if nested in message.enum_type else _message(nested)
        yield from (f"    {line}" for line in lines)


def _type(field: Any, maps: dict[str, Any]) -> str:
    entry = maps.get(_short(field.type_name).rpartition(".")[2])
    if entry is not None:
        return f"map<{', '.join(_type(part, {}) for part in entry.field)}>"
    name = _short(field.type_name) or Field.Type.Name(field.type).removeprefix("TYPE_").lower()
    label = "repeated " if field.label == Field.LABEL_REPEATED else "optional " if field.proto3_optional else ""
    return label + name


def _oneof(field: Any, message: Any) -> str:
    inside = field.HasField("oneof_index") and not field.proto3_optional
    return f"  (one of {message.oneof_decl[field.oneof_index].name})" if inside else ""


def _short(name: str) -> str:
    """Without the package, which is the same for all of ours."""
    return name.removeprefix(f".{holdfast_pb2.DESCRIPTOR.package}.").removeprefix(".")
