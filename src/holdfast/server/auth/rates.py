"""How many requests a second one caller may make, at all doors together."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

from holdfast.errors import TooManyRequests

MOST_CALLERS: Final = 10_000


class Rates:
    """A bucket per caller that holds one second's worth. The caller who was quiet for the longest time is forgotten
    first."""

    def __init__(self, per_second: float | None) -> None:
        self._rate = per_second
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        if self._rate is None:
            return
        now = time.monotonic()
        most = max(self._rate, 1.0)
        left, since = self._buckets.pop(caller, (most, now))
        left = min(most, left + (now - since) * self._rate)
        if left < 1:
            self._buckets[caller] = (left, now)
            wait = (1 - left) / self._rate
            raise TooManyRequests(
                f"more than {self._rate:g} requests a second: wait a little", retry_after_s=round(wait, 3)
            )
        self._buckets[caller] = (left - 1, now)
        if len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
