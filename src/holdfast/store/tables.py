"""Which tables and indexes a schema has, read from the migrations that make it: whether some are missing can then be
told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_CHANGE: Final = re.compile(
    r"^(?:CREATE (?:TABLE|SEQUENCE)(?: IF NOT EXISTS)? (?P<made>\w+)"
    r"|DROP (?:TABLE|SEQUENCE)(?: IF EXISTS)? (?P<dropped>\w+)"
    r"|ALTER TABLE (?P<before>\w+) RENAME TO (?P<after>\w+))",
    re.MULTILINE,
)
_INDEX_CHANGE: Final = re.compile(
    r"^(?:CREATE (?P<unique>UNIQUE )?INDEX (?:CONCURRENTLY )?(?:IF NOT EXISTS )?(?P<made>\w+)\s+"
    r"(?P<on>ON (?P<table>\w+)[^;]*)"
    r"|DROP INDEX (?:CONCURRENTLY )?(?:IF EXISTS )?(?P<dropped>\w+)"
    r"|DROP TABLE(?: IF EXISTS)? (?P<without>\w+)"
    r"|ALTER TABLE (?P<before>\w+) RENAME TO (?P<after>\w+))",
    re.MULTILINE,
)


class Index(NamedTuple):
    """`definition` is what follows its name in the statement that makes it."""

    name: str
    table: str
    definition: str
    unique: bool = False

    def statement(self, *, concurrently: bool) -> str:
        unique, how = "UNIQUE " if self.unique else "", "CONCURRENTLY " if concurrently else ""
        return f"CREATE {unique}INDEX {how}{self.name} {self.definition}"


def made_by(texts: Iterable[str]) -> frozenset[str]:
    """The tables and sequences that are there when these migrations have been applied, one after the other."""
    there: set[str] = set()
    for text in texts:
        for change in _CHANGE.finditer(text):
            there -= {change["dropped"], change["before"]}
            there |= {name for name in (change["made"], change["after"]) if name is not None}
    return frozenset(there)


def indexes_made_by(texts: Iterable[str]) -> dict[str, Index]:
    """The indexes that are there then, besides those of keys; by name."""
    there: dict[str, Index] = {}
    for text in texts:
        for change in _INDEX_CHANGE.finditer(text):
            if change["made"]:
                definition = " ".join(change["on"].split())
                there[change["made"]] = Index(change["made"], change["table"], definition, bool(change["unique"]))
            elif change["dropped"]:
                there.pop(change["dropped"], None)
            elif change["without"]:
                there = {name: index for name, index in there.items() if index.table != change["without"]}
            else:
                there = {name: _renamed(index, change["before"], change["after"]) for name, index in there.items()}
    return there


def _renamed(index: Index, before: str, after: str) -> Index:
    if index.table != before:
        return index
    return index._replace(table=after, definition=index.definition.replace(f"ON {before}", f"ON {after}", 1))


def lost(name: str, missing: Iterable[str]) -> str:
    """What to say about a database that lacks some of them."""
    return (
        f"{name} lacks {', '.join(sorted(missing))}: dropped, or left out when a backup was restored; stop what runs "
        "on it and restore a whole backup, since what was in there can't be made again"
    )
