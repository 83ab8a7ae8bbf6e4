"""Writes the part of proto/holdfast.proto that follows from the table of operations.

Names, numbers and types of fields are pinned in proto/numbers.json: what is there stays as it is, for ever; what the
table has and the file does not gets the next number. `python -m tools.proto` writes both, `--check` says whether they
are up to date. Whatever is not made from the table (the worker's service) stands below the mark and is left alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import structs

from holdfast.contract.operation import Operation
from holdfast.contract.table import TABLE
from holdfast.wire.grpc.message_codec import Kind, kind_of
from holdfast.wire.grpc.names import ATTRIBUTES, ORG, message_of

ROOT: Final = Path(__file__).parents[1]
PROTO: Final = ROOT / "proto" / "holdfast.proto"
NUMBERS: Final = ROOT / "proto" / "numbers.json"
FIRST_MARK: Final = "// --- made from the table of operations by tools/proto.py ---"
LAST_MARK: Final = "// --- end of what is made from the table ---"
SERVICE: Final = "WorkflowDispatch"
SCALARS: Final = {
    "str": "string",
    "enum": "string",
    "int": "int64",
    "datetime": "int64",
    "float": "double",
    "bool": "bool",
    "payload": "bytes",
    "json": "bytes",
}
Messages = dict[str, dict[str, Any]]


class Schema:
    """The messages: as they are pinned, then with what the table adds. `texts` are their comments."""

    def __init__(self, pinned: dict[str, Any]) -> None:
        self.messages: Messages = pinned["messages"]
        self.methods: dict[str, dict[str, str]] = pinned["methods"]
        self.texts: dict[str, str] = {}

    def add(self, operation: Operation) -> None:
        asked = f"{operation.rpc}Request"
        self.struct(operation.request, asked, request=True)
        answer = f"{'stream ' if operation.streams else ''}{self.answer(operation)}"
        pinned = self.methods.setdefault(operation.rpc, {"request": asked, "response": answer})
        pinned["comment"] = f"{operation.summary}."

    def answer(self, operation: Operation) -> str:
        """An earlier method has a message of its own; others answer with the record."""
        own = f"{operation.rpc}Response"
        if operation.answer is None:
            self.messages.setdefault(own, {})
            return own
        if own not in self.messages:
            return self.record(operation.answer)
        wrapped = [field["type"] for field in self.messages[own].values()]
        if wrapped == [message_of(operation.answer.__name__)]:
            self.record(operation.answer)
        else:
            self.struct(operation.answer, own)
        return own

    def record(self, struct: type[msgspec.Struct]) -> str:
        name = message_of(struct.__name__)
        if name not in self.texts:
            self.struct(struct, name)
        return name

    def struct(self, struct: type[msgspec.Struct], name: str, *, request: bool = False) -> None:
        self.texts[name] = "" if request else " ".join((struct.__doc__ or "").split())
        fields = self.messages.setdefault(name, {})
        known = {attribute: field for field, attribute in ATTRIBUTES.get(name, {}).items()}
        for field in structs.fields(struct):
            if request and field.name in {"by", "address"}:
                continue
            public = ORG if request and field.name == "org" else known.get(field.name, field.encode_name)
            if public not in fields:
                fields[public] = {"number": _next(fields), "type": self.type_of(field)}
            else:
                self.type_of(field)

    def type_of(self, field: structs.FieldInfo) -> str:
        kind = kind_of(field.type)
        if kind.name == "tuple":
            return f"repeated {self.plain(kind_of(kind.of))}"
        if kind.name == "dict":
            return f"map<string, {self.plain(kind_of(kind.of))}>"
        said = self.plain(kind)
        return f"optional {said}" if _needs_presence(field, kind) else said

    def plain(self, kind: Kind) -> str:
        return self.record(kind.of) if kind.name == "struct" else SCALARS.get(kind.name, "bytes")


def _next(fields: dict[str, Any]) -> int:
    return max((field["number"] for field in fields.values()), default=0) + 1


def _needs_presence(field: structs.FieldInfo, kind: Kind) -> bool:
    """Whether an empty value would be taken for one that was not given."""
    if kind.name == "struct" or field.required:
        return False
    if kind.optional:
        return True
    return field.default_factory is msgspec.NODEFAULT and bool(field.default)


def _block(name: str, fields: dict[str, Any], text: str) -> str:
    lines = [_comment(text), f"message {name} {{"]
    for field, pinned in sorted(fields.items(), key=lambda item: item[1]["number"]):
        if "comment" in pinned:
            lines.append(_comment(pinned["comment"], "  "))
        lines.append(f"  {pinned['type']} {field} = {pinned['number']};")
    return "\n".join([line for line in lines if line] + ["}"])


def _comment(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 118, initial_indent=f"{indent}// ", subsequent_indent=f"{indent}// ") if text else ""


def made() -> tuple[str, dict[str, Any]]:
    schema = Schema(json.loads(NUMBERS.read_text("utf-8")))
    for operation in TABLE:
        if not operation.no_rpc:
            schema.add(operation)
    methods = [
        f"{_comment(method['comment'], '  ')}\n  rpc {name}({method['request']}) returns ({method['response']});"
        for name, method in schema.methods.items()
    ]
    service = "\n".join([f"// What an application asks for.\nservice {SERVICE} {{", *methods, "}"])
    blocks = [_block(name, fields, schema.texts.get(name, "")) for name, fields in schema.messages.items()]
    return "\n\n".join([FIRST_MARK, service, *blocks, LAST_MARK]), {
        "methods": schema.methods,
        "messages": schema.messages,
    }


def _pinned(numbers: dict[str, Any]) -> str:
    """One line for each method, and for each field of a message: a difference shows what was added."""
    methods = ",\n".join(f"  {json.dumps(name)}: {json.dumps(method)}" for name, method in numbers["methods"].items())
    messages = ",\n".join(
        f"  {json.dumps(name)}: {{\n"
        + ",\n".join(f"   {json.dumps(field)}: {json.dumps(pinned)}" for field, pinned in fields.items())
        + "\n  }"
        for name, fields in numbers["messages"].items()
    )
    return f'{{\n "methods": {{\n{methods}\n }},\n "messages": {{\n{messages}\n }}\n}}\n'


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.proto", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say whether the files are up to date")
    check = parser.parse_args().check
    text, numbers = made()
    before, _, rest = PROTO.read_text("utf-8").partition(FIRST_MARK)
    after = rest.partition(LAST_MARK)[2]
    wanted = {PROTO: f"{before}{text}{after}", NUMBERS: _pinned(numbers)}
    stale = [path for path, content in wanted.items() if path.read_text("utf-8") != content]
    if check and stale:
        names = ", ".join(path.name for path in stale)
        print(f"out of date: {names}; run: make generate", file=sys.stderr)  # noqa: T201 - its answer
        return 1
    for path in stale:
        path.write_text(wanted[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
