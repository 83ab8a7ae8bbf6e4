"""Where a database file may lie."""

import pytest

from holdfast.config import StoreConfig
from holdfast.errors import StorageError
from holdfast.store.sqlite import connections
from holdfast.store.sqlite.places import network_file_system
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
