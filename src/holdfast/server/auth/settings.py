"""Settings of the doors' guard, and the rule for starting: nothing broken or missing ever means "let all in"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Any

from holdfast.contract.keys import Keys
from holdfast.errors import InvalidServer, UnprotectedServer


class AuthMode(StrEnum):
    """`auto` asks for keys once there are any, and everywhere but on this machine; `keys` always; `dev` never, and only
    on this machine."""

    AUTO = "auto"
    KEYS = "keys"
    DEV = "dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """`failures_per_minute`: wrong keys from one address. `known_keys` and `addresses`: how many are remembered."""

    mode: AuthMode = AuthMode.AUTO
    failures_per_minute: int = 60
    known_keys: int = 10_000
    addresses: int = 10_000

    def __post_init__(self) -> None:
        if not isinstance(self.mode, AuthMode):
            raise InvalidServer(f"auth mode must be one of auto, keys, dev, not {self.mode!r:.50}", field="mode")
        for field in ("failures_per_minute", "known_keys", "addresses"):
            value = getattr(self, field)
            if type(value) is not int or not 1 <= value <= 1_000_000:
                raise InvalidServer(f"{field} must be a whole number from 1 to 1000000, not {value!r:.50}", field=field)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> AuthSettings:
        """From the texts of a file, the environment or the command line."""
        fields = {"mode", "failures_per_minute", "known_keys", "addresses"}
        unknown = sorted(set(given) - fields)
        if unknown:
            raise InvalidServer(
                f"there is no auth setting {unknown[0]!r:.50}: there are {', '.join(sorted(fields))}", field=unknown[0]
            )
        values: dict[str, Any] = {}
        for field, value in given.items():
            values[field] = _mode(value) if field == "mode" else _number(value, field)
        return cls(**values)


def _mode(value: Any) -> AuthMode:
    try:
        return AuthMode(value)
    except ValueError:
        raise InvalidServer(f"auth mode must be one of auto, keys, dev, not {value!r:.50}", field="mode") from None


def _number(value: Any, field: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 7:
        return int(value)
    if type(value) is int:
        return value
    raise InvalidServer(f"{field} must be a whole number, not {value!r:.50}", field=field)


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can only be reached from this machine. A name that is not `localhost` can't be
    trusted to stay what it is now; an empty one means every address."""
    host = host.strip("[]")
    if host == "localhost" or host.startswith(("unix:", "/")):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


async def check_start(settings: AuthSettings, binds: Sequence[str], keys: Keys) -> bool:
    """Whether the door may ever be open without a key. Raises if it would stand open to others, or if nobody could ever
    come in; whatever the database raises, it raises, too."""
    if not binds:
        raise InvalidServer("a server needs an address to listen on", field="bind")
    outside = [bind for bind in binds if not is_loopback(bind)]
    if settings.mode is AuthMode.DEV and outside:
        raise UnprotectedServer(
            f"mode 'dev' lets everybody in, and others could reach {outside[0] or 'every address'!r}: listen on "
            "127.0.0.1, or make a key and use mode 'keys'",
            field="bind",
            bind=outside[0],
        )
    has_keys = await keys.any()
    if not has_keys and (outside or settings.mode is AuthMode.KEYS):
        where = f"others could reach {outside[0] or 'every address'!r}" if outside else "mode 'keys' is set"
        raise UnprotectedServer(
            f"{where}, and the database has no API key: make one with `holdfast key create`, or listen on 127.0.0.1",
            field="bind" if outside else "mode",
            bind=outside[0] if outside else None,
        )
    return not outside and settings.mode is not AuthMode.KEYS
