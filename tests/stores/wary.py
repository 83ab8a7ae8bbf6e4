"""Claims that never begin at the beginning: whoever makes them has looked where to begin."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import pytest

from holdfast.store import fronts
from holdfast.store.fronts import Fronts, Lane, Line


class Wary(Fronts):
    """Has looked before the first claim already."""

    def lanes(self, line: Line, now: int) -> Sequence[Lane] | None:
        lanes = None if self.should_look(line, 1.0, now) else super().lanes(line, now)
        assert lanes is None or lanes
        return lanes


def make_wary(monkeypatch: pytest.MonkeyPatch, transactions: ModuleType) -> None:
    """All stores of this kind that are opened from now on."""
    monkeypatch.setattr(fronts, "LONG_S", -1.0)
    monkeypatch.setattr(transactions, "Fronts", Wary)
