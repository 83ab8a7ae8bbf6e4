"""From method and path to the operation and the names in its path.

Paths are split before they are decoded, so that an id may contain a slash (`%2F`). A fixed part counts more than a
name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote_to_bytes

from holdfast.errors import HeadersTooLarge, MalformedBody, MethodNotAllowed, RouteNotFound
from holdfast.server.operation import Operation

LONGEST_PATH: Final = 4_096


class _Node:
    __slots__ = ("fixed", "name", "named", "operations")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.named: _Node | None = None
        self.operations: dict[str, Operation] = {}


class Router:
    def __init__(self, operations: Iterable[Operation]) -> None:
        self._root = _Node()
        self._names: dict[str, list[str]] = {}
        for operation in operations:
            node = self._root
            for part in operation.path.strip("/").split("/"):
                if part.startswith("{"):
                    node.named = node.named or _Node()
                    node = node.named
                else:
                    node = node.fixed.setdefault(part, _Node())
            if operation.method in node.operations:
                raise ValueError(f"two operations are at {operation.method} {operation.path}")
            node.operations[operation.method] = operation
            self._names[operation.name] = operation.parameters

    def find(self, method: str, raw_path: bytes) -> tuple[Operation, dict[str, str]]:
        """Raises RouteNotFound, MethodNotAllowed (which names what is allowed)."""
        if len(raw_path) > LONGEST_PATH:
            raise HeadersTooLarge(f"the path has more than {LONGEST_PATH} bytes")
        node, values = self._walk(raw_path)
        if not node.operations:
            raise RouteNotFound
        # Who wants only the headers asks as who wants all.
        operation = node.operations.get("GET" if method == "HEAD" else method)
        if operation is None:
            allowed = sorted({*node.operations, *(["HEAD"] if "GET" in node.operations else [])})
            raise MethodNotAllowed(f"this address takes {', '.join(allowed)}, not {method:.20}", allowed=allowed)
        names = self._names[operation.name]
        return operation, dict(zip(names, map(_decoded, values, names), strict=True))

    def _walk(self, raw_path: bytes) -> tuple[_Node, list[bytes]]:
        node, values = self._root, list[bytes]()
        for part in raw_path[1:].split(b"/"):
            fixed = node.fixed.get(part.decode("latin-1"))
            if fixed is not None:
                node = fixed
            elif node.named is not None and part:
                node = node.named
                values.append(part)
            else:
                raise RouteNotFound
        return node, values


def _decoded(value: bytes, name: str) -> str:
    try:
        return unquote_to_bytes(value).decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedBody(f"{name} in the path is not UTF-8", field=name) from None
