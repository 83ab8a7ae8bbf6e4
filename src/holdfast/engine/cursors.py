"""Page cursors: opaque to callers, bound to the list call that made them."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from hashlib import sha256

import msgspec

from holdfast.contract.executions import ListExecutions
from holdfast.errors import InvalidCursor


def _digest(request: ListExecutions, last_id: str) -> str:
    asked = msgspec.structs.replace(request, cursor=None, limit=0)
    return sha256(msgspec.json.encode((asked, last_id))).hexdigest()[:16]


def make_cursor(request: ListExecutions, last_id: str) -> str:
    return urlsafe_b64encode(f"{last_id} {_digest(request, last_id)}".encode()).decode()


def read_cursor(request: ListExecutions) -> str | None:
    """The last id of the page before, if the cursor belongs to this very list."""
    if request.cursor is None:
        return None
    try:
        last_id, _, digest = urlsafe_b64decode(request.cursor.encode()).decode().partition(" ")
    except (Base64Error, UnicodeError, ValueError) as error:
        raise InvalidCursor(field="cursor") from error
    if digest != _digest(request, last_id):
        raise InvalidCursor(
            "the cursor belongs to another list: org and filters must stay the same from page to page", field="cursor"
        )
    return last_id
