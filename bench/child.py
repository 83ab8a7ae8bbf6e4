"""One repetition of one benchmark, in this process: `python -m bench.child NAME FOLDER [--quick] [--store postgres]`.

Prints its figures as JSON. The runner starts one of these for each repetition; alone it is what a profiler is pointed
at. With PostgreSQL it has a server of its own, unless one is named.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from bench.catalogue import NAMES, benchmark
from bench.meters import python_speed
from bench.setting import STORES, Setting, fresh_directory

_LOOK_S = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.child", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("folder", type=Path, help="where a fresh folder for its databases is made")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--store", choices=STORES, default=STORES[0])
    parser.add_argument("--server", metavar="URL", help="a PostgreSQL server to make databases on")
    options = parser.parse_args()
    # Whoever ends it wants no server and no databases to be left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    speeds = [python_speed(_LOOK_S)]
    module = benchmark(options.name)
    with _setting(options) as setting:
        figures = module.run(setting)
    speeds.append(python_speed(_LOOK_S))
    answer = {"figures": [asdict(figure) for figure in figures], "speed": min(speeds), "load": os.getloadavg()[0]}
    print(json.dumps(answer), flush=True)


@contextmanager
def _setting(options: argparse.Namespace) -> Iterator[Setting]:
    module = benchmark(options.name)
    parameters = module.QUICK if options.quick else module.FULL
    with fresh_directory(options.folder) as directory:
        if options.store == "sqlite" or options.name == "python":  # which needs none
            yield Setting(options.name, directory, parameters)
            return
        from bench.server import serve  # noqa: PLC0415 - needs the driver, which SQLite does not

        with serve(directory, options.server) as server:
            yield Setting(options.name, directory, parameters, server)


if __name__ == "__main__":
    main()
