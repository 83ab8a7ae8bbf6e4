"""What is served as it is: the OpenAPI document and the page that shows it."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

import msgspec

from holdfast.server.rest.openapi import openapi

Headers = list[tuple[bytes, bytes]]


class Page(NamedTuple):
    data: bytes
    headers: Headers


@cache
def pages() -> dict[bytes, Page]:
    """By path."""
    document = msgspec.json.encode(openapi())
    return {
        b"/api/openapi.json": Page(document, [(b"content-type", b"application/json")]),
        b"/api/docs": _docs(),
    }


def _docs() -> Page:
    """Nothing comes from elsewhere, and nothing but this very script runs."""
    html = files("holdfast.server.rest").joinpath("docs.html").read_bytes()
    script = html.partition(b"<script>")[2].partition(b"</script>")[0]
    digest = b64encode(sha256(script).digest())
    policy = (
        b"default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'sha256-%b'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'" % digest
    )
    return Page(
        html,
        [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", policy),
            (b"referrer-policy", b"no-referrer"),
        ],
    )
