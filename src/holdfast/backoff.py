"""Pauses between tries that double from one to the next."""

from __future__ import annotations

from random import uniform


class Backoff:
    """`pause_s` is the pause that comes next."""

    __slots__ = ("_first_s", "_longest_s", "pause_s")

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self.pause_s = first_s

    @property
    def is_fresh(self) -> bool:
        """No pause was taken since the beginning, or since the last reset."""
        return self.pause_s == self._first_s

    def step(self) -> float:
        """The pause to take now; the one after it is twice as long."""
        pause_s = self.pause_s
        self.pause_s = min(pause_s * 2, self._longest_s)
        return pause_s

    def jittered(self, low: float = 0.5, high: float = 1.0) -> float:
        """The same, times a number drawn from a range: those who failed together do not come back together."""
        return uniform(low, high) * self.step()  # noqa: S311 - spreads callers, no secret

    def reset(self) -> None:
        self.pause_s = self._first_s
