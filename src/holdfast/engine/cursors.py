"""Page cursors: opaque to callers, and bound to the list call that made them.

A cursor is the place in the list and a MAC over that, the org and the filters, made with the installation's secret. So
nobody can make one, and one that was given to another org, or for other filters, does not fit.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.contract.instants import micros
from holdfast.errors import InvalidCursor

MAC_BYTES: Final = 16
LONGEST: Final = 255


class Cursors:
    """`secret` is asked for once, when the first cursor is made or read: it may come from a file."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret
        self._made_key: bytes | None = None

    def make(self, request: Any, last_id: str) -> str:
        """For the page after `last_id` of the list that `request` asks for."""
        return urlsafe_b64encode(self._mac(request, last_id) + last_id.encode()).decode()

    def read(self, request: Any) -> str | None:
        """The last id of the page before, if the request's cursor belongs to this very list."""
        if request.cursor is None:
            return None
        try:
            if len(request.cursor) > LONGEST:
                raise ValueError("longer than any cursor")
            given = request.cursor.encode("ascii")
            last_id = urlsafe_b64decode(given)[MAC_BYTES:].decode()
        except (Base64Error, UnicodeError, ValueError) as error:
            raise InvalidCursor(field="cursor") from error
        # The whole text is compared, because base64 has several for the same bytes: an edited cursor is none.
        if not hmac.compare_digest(given, self.make(request, last_id).encode()):
            raise InvalidCursor(
                "the cursor belongs to another list: org and filters must stay the same from page to page",
                field="cursor",
            )
        return last_id

    def _mac(self, request: Any, last_id: str) -> bytes:
        """What is asked for, without the place and the size of the page: those may change from page to page."""
        if self._made_key is None:
            self._made_key = hmac.digest(self._secret(), b"cursors", "sha256")
        asked = {name: _plain(getattr(request, name)) for name in request.__struct_fields__}
        content = msgspec.json.encode((type(request).__name__, {**asked, "cursor": None, "limit": 0}, last_id))
        return hmac.digest(self._made_key, content, "sha256")[:MAC_BYTES]


def _plain(value: Any) -> Any:
    """As earlier versions had it: their cursors fit, and those made here fit there."""
    if isinstance(value, dict):
        return sorted(value.items())
    return micros(value) if isinstance(value, datetime) else value
