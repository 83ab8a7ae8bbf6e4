"""Where a database file may lie, and who may open it."""

import os
import subprocess
import sys

import pytest

from holdfast.config import StoreConfig
from holdfast.errors import EngineForked, StorageError
from holdfast.store.sqlite import connections
from holdfast.store.sqlite.open_files import OpenFiles, network_file_system
from holdfast.store.sqlite.store import SqliteStore


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ("dev / ext4 rw 0 0\nhost:/x {folder} nfs4 rw 0 0\n", "nfs4"),
        ("dev / ext4 rw 0 0\n//host/x {folder} cifs rw 0 0\n", "cifs"),
        ("host:/root / nfs rw 0 0\ndev {folder} ext4 rw 0 0\n", None),
        ("host:/x {folder} nfs rw 0 0\ndev {folder} ext4 rw 0 0\n", None),
        ("dev / ext4 rw 0 0\nhost:/x {folder}-other nfs rw 0 0\n", None),
        ("", None),
        ("nonsense\n", None),
    ],
)
def test_the_nearest_mount_decides(tmp_path, mounts, expected):
    """The last one on the longest folder above the file."""
    table = tmp_path / "mounts"
    folder = tmp_path / "data"
    folder.mkdir()
    table.write_text(mounts.format(folder=folder))

    assert expected == network_file_system(folder / "a.db", table)


def test_no_table_of_mounts(tmp_path):
    """Elsewhere than on Linux nothing is known, and nothing is refused."""
    assert network_file_system(tmp_path / "a.db", tmp_path / "nothing") is None


async def test_a_network_file_system_is_refused(tmp_path, monkeypatch):
    """Before anything is made there."""
    monkeypatch.setattr(connections, "network_file_system", lambda path: "nfs4")
    store = SqliteStore(tmp_path / "a.db", StoreConfig(), lambda: 1)
    with pytest.raises(StorageError, match=r"network file system \(nfs4\).*local disk"):
        await store.open(None)  # type: ignore[arg-type]  # refused before it is looked at

    assert [] == list(tmp_path.iterdir())


def test_a_file_open_at_a_fork_is_refused_in_the_child(tmp_path, monkeypatch):
    """SQLite's locks are in the parent's memory; other files, and files closed before the fork, may be opened."""
    files = OpenFiles()
    files.opened(tmp_path / "open.db")
    files.opened(tmp_path / "closed.db")
    files.closed(tmp_path / "closed.db")
    monkeypatch.setattr("os.getpid", lambda: -1)

    with pytest.raises(EngineForked, match=r"open\.db"):
        files.opened(tmp_path / "open.db")
    files.opened(tmp_path / "closed.db")
    files.opened(tmp_path / "other.db")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_engine_in_a_forked_child(tmp_path):
    """A real fork: the child is told at once instead of hanging on a lock that is never given back."""
    script = """
import asyncio, os, sys, warnings
from holdfast import Engine
from holdfast.errors import EngineForked
warnings.simplefilter("ignore", DeprecationWarning)

async def main():
    async with Engine(sys.argv[1]):
        if os.fork() == 0:
            asyncio.events._set_running_loop(None)
            try:
                asyncio.run(Engine(sys.argv[1]).open())
            except EngineForked as error:
                print(error.code, flush=True)
            os._exit(0)
        os.wait()

asyncio.run(main())
"""
    command = [sys.executable, "-c", script, f"sqlite:///{tmp_path / 'app.db'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "engine_forked" == done.stdout.strip()
