"""Runs benchmarks: each repetition in a fresh process on fresh databases, each benchmark as one line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.catalogue import YARDSTICKS, benchmark
from bench.figures import Figure, line
from bench.setting import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How to run: on which store, where, how often. `server` names a PostgreSQL server to use instead of a fresh one
    for each repetition."""

    folder: Path
    repetitions: int
    quick: bool
    store: str = "sqlite"
    server: str | None = None

    @property
    def arguments(self) -> list[str]:
        """For the process of a repetition."""
        server = ["--server", self.server] if self.server is not None else []
        return [str(self.folder), "--store", self.store, *server, *(["--quick"] if self.quick else [])]


def run_all(names: Sequence[str], run: Run) -> Iterator[dict[str, Any]]:
    """The yardsticks, then what was asked for; one line each, when it is done."""
    wanted = [*YARDSTICKS, *(name for name in names if name not in YARDSTICKS)]
    for number, name in enumerate(wanted, 1):
        _tell(f"[{number}/{len(wanted)}] {name}")
        began = time.perf_counter()
        found = _run(name, run)
        _tell(f"[{number}/{len(wanted)}] {name}: {time.perf_counter() - began:.0f} s")
        yield found


def _run(name: str, run: Run) -> dict[str, Any]:
    answers = []
    for _ in range(run.repetitions):
        answer = _repetition(name, run)
        if "error" in answer:
            return {"name": name, "figure": None, "unit": "", "parameters": {}, "met": False, "also": [], **answer}
        answers.append(answer)
    module = benchmark(name)
    found = line(
        name,
        [[Figure(**figure) for figure in answer["figures"]] for answer in answers],
        dict(module.QUICK if run.quick else module.FULL),
    )
    return found | {"store": run.store, "machine": _machine(answers)}


def _machine(answers: list[dict[str, Any]]) -> dict[str, float]:
    """How fast bare Python was around the measurement, as the yardstick `python` has it; and how many wanted to run."""
    return {
        "python_speed": round(median(answer["speed"] for answer in answers)),
        "load": round(median(answer["load"] for answer in answers), 1),
    }


def _repetition(name: str, run: Run) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.child", name, *run.arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return {"error": f"ended with code {done.returncode}; its own words are above"}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
