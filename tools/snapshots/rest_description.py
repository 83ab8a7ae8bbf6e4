"""The OpenAPI document: operations by tag, and the schemas, as JSON with one line for whatever fits on one."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from holdfast.api.rest.openapi import openapi

WIDTH = 120


def rest_description() -> dict[str, str]:
    """The whole document in parts that can be read: put together again, they are the document."""
    document = openapi()
    document["info"]["version"] = "any"  # a new version of Holdfast is no new description
    by_tag: dict[str, Any] = defaultdict(lambda: defaultdict(dict))
    for path, methods in document.pop("paths").items():
        for method, operation in methods.items():
            by_tag[operation["tags"][0]][path][method] = operation
    parts = {f"openapi/paths_{tag.replace(' ', '_')}.json": paths for tag, paths in by_tag.items()}
    parts["openapi/schemas.json"] = document["components"].pop("schemas")
    parts["openapi/document.json"] = document
    return {name: pretty(part) + "\n" for name, part in parts.items()}


def pretty(value: Any, indent: int = 0) -> str:
    """JSON with sorted keys, broken into lines only where it is longer than one."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    pad = " " * (indent + 2)
    if isinstance(value, list):
        items = [pretty(item, indent + 2) for item in value]
    else:
        items = [f"{json.dumps(key)}: {pretty(value[key], indent + 2)}" for key in sorted(value)]
    left, right = "[]" if isinstance(value, list) else "{}"
    return f"{left}\n{pad}" + f",\n{pad}".join(items) + f"\n{' ' * indent}{right}"
