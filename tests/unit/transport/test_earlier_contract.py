"""What the version before this one says and understands is still said and understood: messages, operations, events."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from holdfast.model.events import EVENT_TYPES, UPCASTERS
from holdfast.server.rest.openapi import openapi
from holdfast.transport.grpc import holdfast_pb2 as pb
from tests.earlier_version import NOW, Tree

# Runs in a process of the earlier version.
TELL = """
import base64, json, holdfast
from holdfast.api.rest.openapi import openapi
from holdfast.model.events import EVENT_TYPES
from holdfast.wire.grpc import holdfast_pb2 as pb
print(json.dumps({
    "package": holdfast.__file__,
    "proto": base64.b64encode(pb.DESCRIPTOR.serialized_pb).decode(),
    "openapi": openapi(),
    "events": {name: cls.VERSION for name, cls in EVENT_TYPES.items()},
}))
"""


@pytest.fixture
async def told(earlier: Tree) -> Any:
    code, text = await earlier.python("-c", TELL)
    assert 0 == code, text
    found = json.loads(text)
    assert earlier.has(found["package"])
    return found


def test_migrations_of_the_earlier_version_are_unchanged(earlier: Tree):
    """A migration that was released stays byte for byte: databases remember what was applied to them."""
    for store in ("sqlite", "postgres"):
        released = earlier.migrations(store)
        assert released == NOW.migrations(store)[: len(released)]


async def test_messages_and_events_still_mean_the_same(told: Any):
    """No message, field, method or event type is gone or has become another one, and old events can be read."""
    before = FileDescriptorProto.FromString(base64.b64decode(told["proto"]))
    now = FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb)
    assert [] == list(changed_messages(before, now))
    assert {} == {
        name: version
        for name, version in told["events"].items()
        if name not in EVENT_TYPES
        or any((name, old) not in UPCASTERS for old in range(version, EVENT_TYPES[name].VERSION))
    }


async def test_operations_still_take_and_give_what_they_did(told: Any):
    """Over HTTP: an older client's calls are still right, it finds in the answers what it looks for, and a newer client
    finds all it needs in an older server's."""
    assert [] == list(changed_operations(told["openapi"], json.loads(json.dumps(openapi()))))


# --- messages -----------------------------------------------------------------------------------------------------


def changed_messages(before: FileDescriptorProto, now: FileDescriptorProto) -> Iterator[str]:
    messages = {message.name: message for message in now.message_type}
    for message in before.message_type:
        if message.name not in messages:
            yield f"message {message.name} is gone"
        else:
            yield from changed_fields(message, messages[message.name])
    for enum in before.enum_type:
        values = {
            value.number: value.name for found in now.enum_type if found.name == enum.name for value in found.value
        }
        yield from (f"{enum.name}.{value.name}" for value in enum.value if values.get(value.number) != value.name)
    methods = {(service.name, method.name): method for service in now.service for method in service.method}
    for service in before.service:
        for method in service.method:
            if methods.get((service.name, method.name)) != method:
                yield f"method {service.name}.{method.name}"


def changed_fields(before: DescriptorProto, now: DescriptorProto) -> Iterator[str]:
    fields = {field.number: field for field in now.field}
    reserved = {number for span in now.reserved_range for number in range(span.start, span.end)}
    for field in before.field:
        found = fields.get(field.number)
        if found is None:
            if field.number not in reserved:
                yield f"{before.name}.{field.name} = {field.number} is gone and not reserved"
        elif meaning(found) != meaning(field):
            yield f"{before.name}.{field.name} = {field.number} was {meaning(field)}, is {meaning(found)}"


def meaning(field: FieldDescriptorProto) -> tuple[Any, ...]:
    return field.name, field.type, field.label, field.type_name, field.HasField("oneof_index")


# --- operations ---------------------------------------------------------------------------------------------------


def changed_operations(before: Any, now: Any) -> Iterator[str]:
    for path, methods in before["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            found = now["paths"].get(path, {}).get(method)
            if found is None:
                yield f"{name} is gone"
                continue
            yield from changed_parameters(name, operation, found)
            if "requestBody" in operation:
                bodies = [schema_of(one["requestBody"]) for one in (operation, found)]
                yield from changed_schema(
                    f"{name}: body", Schema(before, bodies[0]), Schema(now, bodies[1]), asked=True
                )
            for status, answer in operation["responses"].items():
                if status.startswith("2"):
                    answers = [schema_of(one) for one in (answer, found["responses"].get(status, {}))]
                    yield from changed_schema(
                        f"{name}: {status}", Schema(before, answers[0]), Schema(now, answers[1]), asked=False
                    )


def changed_parameters(name: str, before: Any, now: Any) -> Iterator[str]:
    kept = {(one["in"], one["name"]): one for one in now["parameters"]}
    known = {(one["in"], one["name"]): one for one in before["parameters"]}
    yield from (f"{name}: parameter {key} is gone" for key in known if key not in kept)
    for key, one in kept.items():
        if one.get("required") and not known.get(key, {}).get("required"):
            yield f"{name}: parameter {key} is required now"


def schema_of(part: Any) -> Any:
    return part.get("content", {}).get("application/json", {}).get("schema", {})


class Schema:
    """A schema of a document, without the way to it."""

    def __init__(self, document: Any, found: Any) -> None:
        self._document = document
        while "$ref" in found:
            found = document["components"]["schemas"][found["$ref"].rpartition("/")[2]]
        self.found = found
        self.required = set(found.get("required", ()))

    def parts(self) -> dict[str, Schema]:
        """What it is made of, by name."""
        parts = {name: Schema(self._document, one) for name, one in self.found.get("properties", {}).items()}
        if isinstance(self.found.get("items"), dict):
            parts["[]"] = Schema(self._document, self.found["items"])
        return parts


def changed_schema(name: str, before: Schema, now: Schema, *, asked: bool, depth: int = 6) -> Iterator[str]:
    """Of what is asked, nothing more may be required. Of what is answered, nothing less may be there, and what is new
    needs a default: a newer client also reads the answers of an older server."""
    if not depth:  # some schemas contain themselves
        return
    if before.found.get("type", now.found.get("type")) != now.found.get("type"):
        yield f"{name} was {before.found['type']}, is {now.found.get('type')}"
    more, less = now.required - before.required, before.required - now.required
    yield from (f"{name}.{part} is required now" for part in more)
    yield from (f"{name}.{part} may be missing now" for part in less if not asked)
    if not asked and now.found.get("additionalProperties") is False:
        yield f"{name} is closed: nothing could ever be added to it"
    parts = now.parts()
    for part, schema in before.parts().items():
        if part not in parts:
            yield f"{name}.{part} is gone"
        else:
            yield from changed_schema(f"{name}.{part}", schema, parts[part], asked=asked, depth=depth - 1)
