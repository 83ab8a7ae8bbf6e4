"""Who asks: the holder of an API key."""

from __future__ import annotations

import msgspec

from holdfast.model.keys import Role


class Principal(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Who asks. `key_id` is None in development without keys; `key_hash` is for asking again whether the key is still
    valid."""

    org: str
    role: Role
    key_id: str | None = None
    key_hash: str | None = None

    def __repr__(self) -> str:
        return f"Principal({self.org!r}, {self.role.value!r}, {self.key_id!r})"
