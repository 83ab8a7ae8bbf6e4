"""A store in plain Python dicts: no SQL, no threads, no files. For simulations, and for reading what a store must do.

    MemoryDatabase ◄── MemoryStore (a node) ── takes batches: load ─► decide ─► write, as one step

Several stores over one database are several nodes of one cluster. A transaction is one step of the event loop, so
transactions never overlap; what happens around them (how long they wait, whether they fail, whether anybody hears of
it) is up to a `Faults` object.
"""

from __future__ import annotations

from verification.memory.database import MemoryDatabase
from verification.memory.store import Faults, InDoubtCommit, MemoryStore

__all__ = ["Faults", "InDoubtCommit", "MemoryDatabase", "MemoryStore"]
