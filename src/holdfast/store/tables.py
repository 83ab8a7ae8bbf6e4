"""Which tables a schema has, read from the migrations that make it: whether some are missing can then be told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_CHANGE: Final = re.compile(
    r"^(?:CREATE (?:TABLE|SEQUENCE)(?: IF NOT EXISTS)? (?P<made>\w+)"
    r"|DROP (?:TABLE|SEQUENCE)(?: IF EXISTS)? (?P<dropped>\w+)"
    r"|ALTER TABLE (?P<before>\w+) RENAME TO (?P<after>\w+))",
    re.MULTILINE,
)


def made_by(texts: Iterable[str]) -> frozenset[str]:
    """The tables and sequences that are there when these migrations have been applied, one after the other."""
    there: set[str] = set()
    for text in texts:
        for change in _CHANGE.finditer(text):
            there -= {change["dropped"], change["before"]}
            there |= {name for name in (change["made"], change["after"]) if name is not None}
    return frozenset(there)


def lost(name: str, missing: Iterable[str]) -> str:
    """What to say about a database that lacks some of them."""
    return (
        f"{name} lacks {', '.join(sorted(missing))}: dropped, or left out when a backup was restored; stop what runs "
        "on it and restore a whole backup, since what was in there can't be made again"
    )
