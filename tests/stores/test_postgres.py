import asyncpg

from verification.stores import StoreConformance


class TestPostgres(StoreConformance):
    """The suite on a database of its own for each test."""

    shared = True

    def transient_error(self) -> Exception:
        return asyncpg.DeadlockDetectedError("deadlock detected")
