"""Where and how large a benchmark runs: its folder, its parameters, its databases."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.config import EngineConfig, StoreConfig, WorkerConfig

ROOT = Path(__file__).resolve().parents[1]
_NOT_A_DISK = {"tmpfs", "ramfs", "devtmpfs"}


@dataclass(frozen=True, slots=True)
class Setting:
    """What `run` gets: the benchmark's name, a folder of its own on a real disk, and its parameters."""

    name: str
    directory: Path
    parameters: Mapping[str, Any]

    def __getitem__(self, parameter: str) -> Any:
        return self.parameters[parameter]

    def path(self, name: str = "bench") -> Path:
        return self.directory / f"{name}.db"

    def url(self, name: str = "bench") -> str:
        return f"sqlite:///{self.path(name)}"

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
