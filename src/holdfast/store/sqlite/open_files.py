"""Where a database file lies, and which process has opened it.

Shared memory and locks of a WAL do not work over a network: two machines would each think that they are alone, and
damage the file. Nor do they survive a fork: SQLite keeps its locks in the memory of the process, a child finds its
parent's there and takes them for its own.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from holdfast.errors import EngineForked

NETWORK_FILE_SYSTEMS = frozenset(
    {"afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "lustre", "nfs", "nfs4", "smb3", "smbfs"}
)


def network_file_system(path: Path, mounts: Path = Path("/proc/mounts")) -> str | None:
    """The kind of network file system the file would lie on, or None: also where that can't be found out."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        folders = {str(folder) for folder in (path.resolve().parent, *path.resolve().parents)}
    except OSError:
        return None
    found = [(fields[1], fields[2]) for fields in map(str.split, lines) if len(fields) > 2 and fields[1] in folders]
    # The longest folder is the nearest; of two mounts on one folder the later covers the earlier.
    kind = max(enumerate(found), key=lambda mount: (len(mount[1][0]), mount[0]), default=(0, ("", "")))[1][1]
    return kind if kind in NETWORK_FILE_SYSTEMS else None


class OpenFiles:
    """The database files that this process has open, to tell a child that was forked meanwhile."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._open: Counter[Path] = Counter()

    def opened(self, path: Path) -> None:
        place = path.resolve()
        if self._pid != os.getpid() and self._open[place]:
            raise EngineForked(
                f"{path} was open in the parent process when this one was forked from it, and SQLite can't be used "
                "across a fork: start the engine after the fork",
                path=str(path),
            )
        self._open[place] += 1

    def closed(self, path: Path) -> None:
        if self._pid == os.getpid():
            self._open[path.resolve()] -= 1


OPEN_FILES = OpenFiles()
