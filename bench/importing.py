"""What importing costs, in fresh interpreters: `import holdfast` alone, and with the names an application uses.

Each is the median of whole interpreter runs, less the median of bare ones; all kinds take turns.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from bench.figures import Figure
from bench.setting import ROOT, Setting

FULL = {"interpreters": 15}
QUICK = {"interpreters": 3}

_PROGRAMS = ("pass", "import holdfast", "from holdfast import Engine, workflow, task")


def run(setting: Setting) -> list[Figure]:
    took: dict[str, list[float]] = {program: [] for program in _PROGRAMS}
    for _ in range(setting["interpreters"] + 1):
        for program in _PROGRAMS:
            took[program].append(_milliseconds(program))
    # The first of each may have had files to compile or to read from disk.
    bare, package, names = (median(took[program][1:]) for program in _PROGRAMS)
    setting.tell(f"{package - bare:.0f} ms, with Engine, workflow and task {names - bare:.0f} ms")
    return [
        Figure(
            name="import holdfast",
            figure=package - bare,
            unit="ms",
            yardstick=bare,
            yardstick_name="bare interpreter, ms",
            at_most=150.0,
        ),
        Figure(name="import Engine, workflow, task", figure=names - bare, unit="ms"),
        Figure(name="bare interpreter", figure=bare, unit="ms"),
    ]


def _milliseconds(program: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
    return (time.perf_counter() - began) * 1e3
