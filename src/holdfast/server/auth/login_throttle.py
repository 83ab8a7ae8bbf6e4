"""How many wrong keys an address may try."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import ip_address, ip_network

from holdfast.errors import TooManyRequests


class LoginThrottle:
    """A bucket of tries per address that fills up again within a minute. Bounded: the address that was quiet for the
    longest time is forgotten first."""

    def __init__(self, per_minute: int, addresses: int, clock: Callable[[], float]) -> None:
        self._most = float(per_minute)
        self._addresses = addresses
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> None:
        """One try. Raises TooManyRequests, and takes nothing, if none is left."""
        place = place_of(address)
        left, now = self._now_left(place)
        if left < 1:
            wait = (1 - left) * 60 / self._most
            raise TooManyRequests(
                f"too many wrong keys from this address: try again in {max(round(wait), 1)} s", retry_after_s=wait
            )
        self._keep(place, left - 1, now)

    def charge(self, address: str) -> None:
        """One try that was not asked for in advance: there may be none left afterwards."""
        place = place_of(address)
        left, now = self._now_left(place)
        self._keep(place, max(left - 1, 0.0), now)

    def give_back(self, address: str) -> None:
        place = place_of(address)
        left, now = self._now_left(place)
        self._keep(place, min(left + 1, self._most), now)

    def _now_left(self, place: str) -> tuple[float, float]:
        now = self._clock()
        left, since = self._left.get(place, (self._most, now))
        return min(self._most, left + (now - since) * self._most / 60), now

    def _keep(self, place: str, left: float, now: float) -> None:
        if left >= self._most:
            self._left.pop(place, None)
            return
        self._left[place] = (left, now)
        self._left.move_to_end(place)
        while len(self._left) > self._addresses:
            self._left.popitem(last=False)


def place_of(address: str) -> str:
    """Whose tries are counted together: a single IPv4 address, or a /64 of IPv6, which one person has all of."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((found, 64), strict=False))
