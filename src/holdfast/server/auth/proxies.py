"""From where a call comes when proxies stand before the server.

Only a proxy that the settings name is believed, and of what it tells only as much as trusted proxies have added:
`X-Forwarded-For` is read from its end, and the first address that is not a trusted proxy's is the caller's. What a
caller has put there himself lies before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final

from holdfast.errors import InvalidServer

MOST_HOPS: Final = 20


class Proxies:
    """`trusted` are addresses and networks: `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        if isinstance(trusted, str):
            raise InvalidServer("trusted_proxies is a list of addresses and networks", field="trusted_proxies")
        self._networks = [_network(text) for text in trusted]

    def address(self, peer: str, forwarded: Sequence[str | bytes]) -> str:
        """The caller's address. `forwarded` are all values of the header, as they came."""
        if not self._networks or not forwarded or not self._is_trusted(_address(peer)):
            return peer
        caller = peer
        for text in reversed(_hops(forwarded)[-MOST_HOPS:]):
            found = _address(text)
            if found is None:
                # Nonsense: whoever has passed it on is the last that is known.
                return caller
            caller = str(found)
            if not self._is_trusted(found):
                return caller
        return caller

    def _is_trusted(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


def _network(text: Any) -> Any:
    try:
        return ip_network(text, strict=False)
    except (ValueError, TypeError):
        raise InvalidServer(
            f"trusted_proxies: {text!r:.50} is no address and no network such as 10.0.0.0/8", field="trusted_proxies"
        ) from None


def _hops(forwarded: Sequence[str | bytes]) -> list[str]:
    texts = [value.decode("latin-1") if isinstance(value, bytes) else value for value in forwarded]
    return [hop.strip() for text in texts for hop in text.split(",")]


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Also with a port: `192.0.2.1:443`, `[2001:db8::1]:443`."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
