"""Where a database file lies.

Shared memory and locks of a WAL do not work over a network: two machines would each think that they are alone, and
damage the file.
"""

from __future__ import annotations

from pathlib import Path

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
