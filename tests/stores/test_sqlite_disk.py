import asyncio
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.config import StoreConfig
from holdfast.errors import StorageFull
from holdfast.model.events import HistoryEvent, SignalReceived
from holdfast.store.protocol import BatchSource, Clock, Store
from holdfast.store.sqlite.store import SqliteStore
from tests.conftest import until
from tests.stores.test_sqlite import writer_of
from tests.stores.test_sqlite_processes import finish, history, start
from verification.stores import Bench
from verification.stores.records import ORG, an_execution, an_id

WAL_BYTES = 256 * 1024


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


@pytest.fixture
async def bench(path: Path) -> AsyncIterator[Bench]:
    async def open_(clock: Clock, source: BatchSource) -> Store:
        store = SqliteStore(path, StoreConfig(synchronous="normal", checkpoint_wal_bytes=WAL_BYTES), clock)
        await store.open(source)
        return store

    bench = await Bench.opened(open_)
    await bench.write(new_executions=[an_execution()])
    yield bench
    await bench.store.close()


class Filler:
    """Writes events of 10,000 bytes."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.written = 0

    async def write(self, count: int) -> None:
        for _ in range(count):
            event = HistoryEvent(self.written + 1, 0, SignalReceived(signal_name="x" * 10_000))
            await self.bench.write(events=[(an_id(1), event)])
            self.written += 1

    async def read(self) -> int:
        return len(await self.bench.store.history(ORG, an_id(1)))


def wal_bytes(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


async def test_full_database_refuses_writes_until_there_is_space(bench, path):
    """Nothing of a refused batch is written, reads go on, writes resume by themselves."""
    connection = writer_of(bench).connection
    filler = Filler(bench)
    connection.execute("PRAGMA max_page_count = 100")
    with pytest.raises(StorageFull) as raised:
        await filler.write(100)
    assert isinstance(raised.value.__cause__, sqlite3.Error)
    with pytest.raises(StorageFull):
        await filler.write(1)
    assert 0 < filler.written == await filler.read()

    connection.execute("PRAGMA max_page_count = 1000000")
    await filler.write(5)
    assert filler.written == await filler.read()
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.slow
def test_full_disk_loses_nothing_that_was_acknowledged(path):
    """A file that may not grow looks to SQLite like a failing disk: refused, read on, resumed, intact."""
    (printed,) = finish(start("fill", path, 1_000_000))

    assert history(path) == (int(printed), list(range(1, int(printed) + 1)))


async def test_wal_is_written_back_while_writing(bench, path):
    """It starts again instead of growing."""
    filler = Filler(bench)
    sizes = []
    for _ in range(150):
        await filler.write(1)
        sizes.append(wal_bytes(path))

    assert WAL_BYTES < max(sizes) < WAL_BYTES + 50_000
    assert await filler.read() == 150


async def test_wal_is_bounded_again_when_a_long_reader_ends(bench, path):
    """A reader keeps the log from being reused; when it ends the log is cut back."""
    filler = Filler(bench)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM holdfast_events").fetchall()
        await filler.write(150)
        assert wal_bytes(path) > 4 * WAL_BYTES

    async def cut() -> bool:
        await filler.write(1)
        return wal_bytes(path) <= WAL_BYTES

    await until(cut)
    assert await filler.read() == filler.written


async def test_idle_writer_writes_the_wal_back(bench, path, tmp_path):
    """After a second without work the database file alone holds everything."""
    await Filler(bench).write(3)
    copy = tmp_path / "copy.db"

    async def complete() -> bool:
        # By another process: closing a descriptor of the file in this one would drop the store's locks.
        await asyncio.to_thread(subprocess.run, ["cp", path, copy], check=True)
        with closing(sqlite3.connect(copy)) as connection:
            tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'holdfast_events'").fetchone()[
                0
            ]
            return bool(tables) and connection.execute("SELECT count(*) FROM holdfast_events").fetchone() == (3,)

    await until(complete)
