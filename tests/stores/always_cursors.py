"""Claims that never begin at the beginning: whoever makes them has looked where to begin."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import pytest

from holdfast.store import claim_cursors
from holdfast.store.claim_cursors import ClaimCursor, ClaimCursors, ClaimScope


class AlwaysCursors(ClaimCursors):
    """Has looked before the first claim already."""

    def cursors(self, scope: ClaimScope, now: int) -> Sequence[ClaimCursor] | None:
        cursors = None if self.should_refresh(scope, 1.0, now) else super().cursors(scope, now)
        assert cursors is None or cursors
        return cursors


def claim_from_cursors(monkeypatch: pytest.MonkeyPatch, transactions: ModuleType) -> None:
    """All stores of this kind that are opened from now on."""
    monkeypatch.setattr(claim_cursors, "LONG_S", -1.0)
    monkeypatch.setattr(transactions, "ClaimCursors", AlwaysCursors)
