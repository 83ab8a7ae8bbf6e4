"""The version before this one, taken from the repository's own history, and processes that run it.

A tree is a folder with a `holdfast` package in it. Processes get it by PYTHONPATH, which comes before what is
installed; whoever starts one asks it where its package came from (`Tree.has`).
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.store.postgres.migrate import Migration, read_folder

ROOT: Final = Path(__file__).parents[1]

# Move it at each release, to the commit that was released: what comes next must then get along with that one.
# HOLDFAST_TEST_EARLIER names another revision for one run.
EARLIER: Final = os.environ.get("HOLDFAST_TEST_EARLIER", "3b8e26180c0ff96636f1722f279cb45ab36ed282")


class Tree(NamedTuple):
    """A version of Holdfast in a folder."""

    name: str
    source: Path

    @property
    def env(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.source)}

    def has(self, file: str) -> bool:
        """Whether a file of a running process is one of this version's."""
        return Path(file).is_relative_to(self.source)

    def migrations(self, store: str) -> tuple[Migration, ...]:
        """`store` is sqlite or postgres."""
        return read_folder(self._migrations(store))

    def _migrations(self, store: str) -> Path:
        return self.source / "holdfast" / "store" / store / "migrations"

    async def python(self, *arguments: str) -> tuple[int, str]:
        """Run Python with this version: its exit code, and what it said."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, **self.env},
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), 40)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return process.returncode, said.decode()

    async def holdfast(self, *arguments: str) -> tuple[int, str]:
        """Run this version's command line."""
        return await self.python("-m", "holdfast", *arguments)


NOW: Final = Tree("now", ROOT / "src")


def why_missing() -> str | None:
    """Why the earlier version can't be had here; None if it can."""
    git = shutil.which("git")
    if git is None:
        return "git is not installed, so the earlier version can't be unpacked"
    if not (ROOT / ".git").exists():
        return "this is no clone of the repository, so there is no earlier version"
    found = subprocess.run(
        [git, "cat-file", "-e", f"{EARLIER}^{{commit}}"], cwd=ROOT, capture_output=True, check=False, text=True
    )
    if found.returncode:
        why = found.stderr.strip()[:200]
        return f"git does not have the earlier version {EARLIER[:12]} here, fetch the whole history: {why}"
    return None


def unpack(folder: Path) -> Tree:
    """The earlier version, in this empty folder."""
    git = shutil.which("git")
    assert git is not None, "ask why_missing() first"
    packed = subprocess.run(
        [git, "archive", "--format=tar", EARLIER, "src/holdfast"], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return Tree("earlier", folder / "src")


def with_one_more_migration(folder: Path, *, compatible: bool) -> Tree:
    """This version as it may be some day: with a migration more, which may let older programs work on."""
    shutil.copytree(NOW.source / "holdfast", folder / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
    tree = Tree("later", folder)
    for store in ("sqlite", "postgres"):
        last = tree.migrations(store)[-1].version
        words = "-- compatible from: 1\n" if compatible else ""
        text = f"{words}\nALTER TABLE holdfast_executions ADD COLUMN later INTEGER NOT NULL DEFAULT 0;\n"
        (tree._migrations(store) / f"{last + 1:04}_later.sql").write_text(text)
    return tree


def may_return(older: Tree, newer: Tree, store: str) -> bool:
    """Whether the older version may start on a database that the newer one has brought up to date.

    On SQLite only if it knows the whole schema; on PostgreSQL also if what it does not know says that it may.
    """
    known = older.migrations(store)[-1].version
    unknown = [migration for migration in newer.migrations(store) if migration.version > known]
    return not unknown or (store == "postgres" and all(migration.compatible_from <= known for migration in unknown))
