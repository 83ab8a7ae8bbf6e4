"""Where and how large a benchmark runs: its store, its folder, its parameters, its databases."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import meters
from holdfast.config import EngineConfig, StoreConfig, WorkerConfig

if TYPE_CHECKING:
    from bench.server import Server

ROOT = Path(__file__).resolve().parents[1]
STORES = ("sqlite", "postgres")
_NOT_A_DISK = {"tmpfs", "ramfs", "devtmpfs"}


@dataclass(frozen=True, slots=True)
class Setting:
    """What `run` gets: the benchmark's name, a folder of its own on a real disk, its parameters, and where there is
    one, a PostgreSQL server."""

    name: str
    directory: Path
    parameters: Mapping[str, Any]
    postgres: Server | None = None

    def __getitem__(self, parameter: str) -> Any:
        return self.parameters[parameter]

    @property
    def server(self) -> Server:
        if self.postgres is None:
            raise RuntimeError(f"{self.name} needs PostgreSQL: run it with --store postgres")
        return self.postgres

    def path(self, name: str = "bench") -> Path:
        return self.directory / f"{name}.db"

    def url(self, name: str = "bench") -> str:
        return self.postgres.database(name) if self.postgres is not None else f"sqlite:///{self.path(name)}"

    def aim(self, sqlite: float, *, postgres: float | None = None) -> float | None:
        """The bound that counts for the store."""
        return sqlite if self.postgres is None else postgres

    def commit_seconds(self, count: int) -> float:
        """Bare commits to the store: seconds for `count` of them."""
        if self.postgres is None:
            return meters.commit_seconds(self.path("bare"), count)
        from bench import server  # noqa: PLC0415 - needs the driver, which SQLite does not

        return server.commit_seconds(self.postgres.database("bare"), count)

    def tell(self, text: str) -> None:
        """Progress, for whoever watches."""
        print(f"  {self.name}: {text}", file=sys.stderr, flush=True)


def config(**worker: Any) -> EngineConfig:
    """The defaults, written out where a benchmark depends on them; `worker` overrides the worker's."""
    return EngineConfig(store=StoreConfig(synchronous="full"), worker=WorkerConfig(**worker))


@contextmanager
def fresh_directory(parent: Path | None = None) -> Iterator[Path]:
    """A folder that goes away afterwards. By default next to the project: `/tmp` is often memory, not a disk."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=parent or ROOT.parent) as name:
        yield Path(name).resolve()


def file_system(directory: Path) -> str:
    """The kind of file system a folder is on, where the operating system tells (Linux); else nothing."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    found = [(mount[1], mount[2]) for mount in (text.split() for text in mounts) if _holds(mount[1], directory)]
    return max(found, key=lambda mount: len(mount[0]))[1] if found else ""


def is_disk(directory: Path) -> bool:
    return file_system(directory) not in _NOT_A_DISK


def _holds(mount_point: str, directory: Path) -> bool:
    return directory.resolve().is_relative_to(mount_point.replace("\\040", " "))
