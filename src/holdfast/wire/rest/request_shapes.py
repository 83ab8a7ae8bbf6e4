"""How the request of an operation travels over HTTP: which fields are in its path, its query, its body.

The shape of each operation is derived from its request struct, once. The server makes a request out of path, query and
body with it, the client takes a request apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, get_args, get_origin
from urllib.parse import quote

import msgspec
from msgspec import structs

from holdfast.config import Limits
from holdfast.contract.fields import Key, checks_in
from holdfast.contract.operation import GET, SERVER_FIELDS, Operation
from holdfast.contract.principals import Principal
from holdfast.errors import InvalidRequest

_ALIAS: Final = "idempotency_key"
_ENCODE: Final = msgspec.json.Encoder().encode
_LONGEST_NUMBER: Final = 18
_NO_LIMITS: Final = Limits()


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all bodies and queries share: fields nobody knows are refused, never ignored."""


class RequestShape:
    """`fields` are the struct's fields in the body or query, `in_path` those in the path by the path's names."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self._struct = operation.request
        fields = {field.encode_name: field for field in structs.fields(self._struct)}
        named = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
        self.in_path = {name: fields[name] for name in named if name not in SERVER_FIELDS}
        path_fields = {field.name for field in self.in_path.values()}
        sent = [field for field in fields.values() if field.name not in path_fields | SERVER_FIELDS]
        self.fields = tuple(field.name for field in sent)
        self.has_request_id = "request_id" in self.fields
        self._by_server = SERVER_FIELDS.intersection(self._struct.__struct_fields__)
        self._pairs = {field.name for field in sent if operation.method == GET and _is_mapping(field)}
        derived = self._derived(sent)
        self.query = derived if operation.method == GET and sent else None
        self.body = derived if operation.method != GET and (sent or operation.method != "DELETE") else None

    def _derived(self, sent: list[structs.FieldInfo]) -> Any:
        """A struct of these fields under their public names."""
        camel = "".join(part.capitalize() for part in self.operation.name.split("_"))
        names = {field.name: field.encode_name for field in sent}
        columns: list[Any] = [_pairs(field) if field.name in self._pairs else _column(field) for field in sent]
        if self.has_request_id:
            names[_ALIAS] = _ALIAS
            columns.append((_ALIAS, Key | None, None))
        return msgspec.defstruct(
            f"{camel}{'Query' if self.operation.method == GET else 'Body'}",
            columns,
            bases=(Body,),
            module=__name__,
            namespace={"__doc__": self._struct.__doc__},
            rename=names,
            frozen=True,
            kw_only=True,
            omit_defaults=True,
            forbid_unknown_fields=True,
        )

    # --- the server's side ---

    def request(
        self, org: str, path: Mapping[str, str], given: Any, *, key: str | None, by: Principal | None, address: str
    ) -> Any:
        """The request of a call. `key` is the header `Idempotency-Key`."""
        values: dict[str, Any] = {name: getattr(given, name) for name in self.fields}
        values.update({name: _mapping(values[name], name) for name in self._pairs})
        for name, field in self.in_path.items():
            values[field.name] = _number(path[name], name) if _is_number(field) else path[name]
        if self.has_request_id:
            values["request_id"] = one_key(key, given.request_id, given.idempotency_key)
        told: dict[str, Any] = {"org": org, "by": by, "address": address}
        return self._struct(**values, **{name: told[name] for name in self._by_server})

    # --- the client's side ---

    def target(self, request: Any) -> str:
        """The path of a request. A name that can't be in a path is refused: it would lead to another operation."""
        path = self.operation.path.replace("{org}", escaped(request.org))
        for name, field in self.in_path.items():
            for one in checks_in(field.type):
                one.run(getattr(request, field.name), one.name or field.name, _NO_LIMITS)
            path = path.replace(f"{{{name}}}", escaped(str(getattr(request, field.name))))
        return path

    def content(self, request: Any, **others: Any) -> Body | None:
        """The body of a request, with some values replaced."""
        if self.body is None:
            return None
        body: Body = self.body(**{name: getattr(request, name) for name in self.fields} | others)
        return body

    def parameters(self, request: Any) -> dict[str, Any]:
        """The query of a request: texts and lists of texts by their public names; defaults are left out."""
        if self.query is None:
            return {}
        values = {name: getattr(request, name) for name in self.fields}
        values.update({name: _joined(values[name]) for name in self._pairs})
        plain = msgspec.to_builtins(self.query(**values), order=None)
        return {name: _text(value) for name, value in plain.items()}


def _column(field: structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.name, field.type, msgspec.field(default_factory=field.default_factory)
    if field.default is not msgspec.NODEFAULT:
        return field.name, field.type, field.default
    return field.name, field.type


def _is_mapping(field: structs.FieldInfo) -> bool:
    kinds = (field.type, *get_args(field.type))
    return any(get_origin(getattr(kind, "__origin__", kind)) is dict or get_origin(kind) is dict for kind in kinds)


def _pairs(field: structs.FieldInfo) -> Any:
    """In a query a mapping is written `name=key=value`, once for each pair."""
    return field.name, tuple[str, ...], ()


def _mapping(pairs: tuple[str, ...], name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in sorted(pairs):
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidRequest(f"{name} is given as key=value, not {text!r:.100}", field=name)
        if key in found:
            raise InvalidRequest(f"{name} has the key {key!r:.100} twice", field=name)
        found[key] = value
    return found


def _joined(mapping: Mapping[str, str] | None) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in (mapping or {}).items())


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _is_number(field: structs.FieldInfo) -> bool:
    return getattr(field.type, "__origin__", field.type) is int


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > _LONGEST_NUMBER:
        raise InvalidRequest(f"{name} must be a positive integer, not {text!r:.50}", field=name)
    return int(text)


def one_key(*given: str | None) -> str | None:
    """`request_id`, `idempotency_key` and the header mean the same."""
    values = {value for value in given if value is not None}
    if len(values) > 1:
        raise InvalidRequest(
            "idempotency_key, request_id and the header Idempotency-Key mean the same: give one of them",
            field="idempotency_key",
        )
    return values.pop() if values else None


def escaped(text: str) -> str:
    """A name as a part of a path."""
    return quote(text, safe="")


@cache
def shape_of(operation: Operation) -> RequestShape:
    return RequestShape(operation)
