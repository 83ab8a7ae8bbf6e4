import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from holdfast.config import StoreConfig
from holdfast.store.protocol import BatchSource, Clock, Store
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.stores import OpenStore, StoreConformance

QUICK = StoreConfig(synchronous="normal")


class SqliteConformance(StoreConformance):
    def transient_error(self) -> Exception:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        return error


class TestFile(SqliteConformance):
    @pytest.fixture
    async def open_store(self, tmp_path: Path) -> AsyncIterator[OpenStore]:
        async with AsyncExitStack() as stack:

            async def open_(clock: Clock, source: BatchSource) -> Store:
                store = SqliteStore(tmp_path / "test.db", QUICK, clock)
                await store.open(source)
                stack.push_async_callback(store.close)
                return store

            yield open_


class TestMemory(SqliteConformance):
    shared = False

    @pytest.fixture
    async def open_store(self) -> AsyncIterator[OpenStore]:
        async with AsyncExitStack() as stack:

            async def open_(clock: Clock, source: BatchSource) -> Store:
                store = SqliteStore(None, QUICK, clock)
                await store.open(source)
                stack.push_async_callback(store.close)
                return store

            yield open_
