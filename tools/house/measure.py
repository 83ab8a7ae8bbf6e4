"""One number about the code, with the places it was counted in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """A ratio that is held by a limit: less is better. `places` is what a reader wants to see when it got worse."""

    name: str
    value: int
    means: str
    places: tuple[str, ...] = ()
