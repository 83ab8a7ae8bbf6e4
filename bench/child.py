"""One repetition of one benchmark, in this process: `python -m bench.child NAME FOLDER [--quick]`.

Prints its figures as JSON. The runner starts one of these for each repetition; alone it is what a profiler is pointed
at.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

from bench.catalogue import NAMES, benchmark
from bench.meters import python_speed
from bench.setting import Setting, fresh_directory

_LOOK_S = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.child", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("folder", type=Path, help="where a fresh folder for its databases is made")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    module = benchmark(options.name)
    speeds = [python_speed(_LOOK_S)]
    with fresh_directory(options.folder) as directory:
        figures = module.run(Setting(options.name, directory, module.QUICK if options.quick else module.FULL))
    speeds.append(python_speed(_LOOK_S))
    answer = {"figures": [asdict(figure) for figure in figures], "speed": min(speeds), "load": os.getloadavg()[0]}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
