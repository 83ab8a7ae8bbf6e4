"""Planted bugs of the PostgreSQL store, as `verification.mutants` has them of the engine: to see that tests notice.

with planted("lost_commit_counts_as_failed"): …        HOLDFAST_MUTANT=lost_commit_counts_as_failed in a process
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from holdfast.store.postgres import commit_markers, load, load_messages
from holdfast.store.postgres.transactions import Transactions
from verification import mutants

Patches = list[tuple[Any, str, Any]]


def _answer(stands: bool) -> Patches:
    async def answered(self: Transactions, *_: Any) -> bool:
        return stands

    return [(Transactions, "_stands", answered)]


def _seen_only() -> Patches:
    """As a reader sees it: one that is about to make the row is not waited for."""
    return [(commit_markers, "_LAST", "SELECT batch FROM holdfast_writers WHERE id = $1::text FOR UPDATE")]


def _unlocked() -> Patches:
    return [(load, "_LOCK", load._LOCK.replace("FOR NO KEY UPDATE OF e", ""))]


def _topics_unlocked() -> Patches:
    return [(load_messages, "_LOCK_TOPICS", "SELECT $1::integer[]")]


def _not_again() -> Patches:
    async def find_again(self: Any) -> None:
        return None

    return [(load._Load, "_find_again", find_again)]


MUTANTS: dict[str, Callable[[], Patches]] = {
    "lost_commit_counts_as_failed": lambda: _answer(False),
    "lost_commit_counts_as_committed": lambda: _answer(True),
    "first_commit_not_waited_for": _seen_only,
    "heads_not_locked": _unlocked,
    "topics_not_locked": _topics_unlocked,
    "keys_not_looked_up_again": _not_again,
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, attribute, value in MUTANTS[name]():
            stack.enter_context(patch.object(owner, attribute, value))
        yield


def from_environment() -> None:
    """Plant what HOLDFAST_MUTANT names, here or in the engine, for the rest of the process."""
    name = os.environ.get(mutants.VARIABLE)
    if name in MUTANTS:
        _FOR_EVER.enter_context(planted(name))
    else:
        mutants.from_environment()


_FOR_EVER = ExitStack()
