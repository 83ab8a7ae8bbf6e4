"""`python -m bench`: see the package's text. One JSON line per benchmark on standard output, then a table of all."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
from pathlib import Path

from bench.catalogue import about, names
from bench.runner import Run, run_all
from bench.setting import ROOT, STORES, file_system, is_disk
from bench.table import table

STORE_VARIABLE = "HOLDFAST_BENCH_STORE"


def main() -> int:
    options = _parser().parse_args()
    if options.store not in STORES:
        return _refuse(f"no store {options.store} ({STORE_VARIABLE}); there are: {', '.join(STORES)}")
    known = names(options.store)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        return _refuse(f"no benchmark {', '.join(unknown)} on {options.store}; there are: {', '.join(known)}")
    if options.server is not None and options.store != "postgres":
        return _refuse("--server is a PostgreSQL server: it goes with --store postgres")
    if options.list:
        print("\n".join(f"{name:<12} {about(name)}" for name in known))
        return 0
    folder = (options.dir or ROOT.parent).resolve()
    if not folder.is_dir():
        return _refuse(f"{folder} is not a folder: create it first, or give another with --dir")
    if not is_disk(folder):
        print(f"{folder} is memory, not a disk: what is measured there says nothing", file=sys.stderr)
    print(_where(options, folder), file=sys.stderr)
    return _measure(options, folder)


def _measure(options: argparse.Namespace, folder: Path) -> int:
    run = Run(
        folder=folder,
        repetitions=options.repeat or (1 if options.quick else 3),
        quick=options.quick,
        store=options.store,
        server=options.server,
    )
    lines = []
    for found in run_all(options.names or names(options.store), run):
        lines.append(found)
        print(json.dumps(found), flush=True)
    print(f"\n{table(lines)}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(lines, indent=2) + "\n", encoding="utf-8")
    return 1 if any("error" in found for found in lines) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Holdfast. Prints one JSON line per benchmark, then a table. "
        "A missed target is reported, not an error: machines differ.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which benchmarks (all; the yardsticks always run)")
    parser.add_argument("--quick", action="store_true", help="small and once: shows that it works, measures little")
    parser.add_argument("--repeat", type=int, metavar="N", help="repetitions of each (3; 1 with --quick)")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and stop")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all lines to this file, too")
    parser.add_argument("--dir", type=Path, help="where databases are made (next to the project); must be a real disk")
    parser.add_argument(
        "--store",
        metavar="STORE",
        default=os.environ.get(STORE_VARIABLE) or STORES[0],
        help=f"sqlite or postgres (sqlite; or what {STORE_VARIABLE} says)",
    )
    parser.add_argument(
        "--server",
        metavar="URL",
        help="the PostgreSQL server to make databases on (without: one of its own for each repetition)",
    )
    return parser


def _where(options: argparse.Namespace, folder: Path) -> str:
    place = f"{folder} ({file_system(folder) or 'unknown file system'})"
    if options.store == "sqlite":
        store = f"SQLite {sqlite3.sqlite_version}, synchronous=FULL, databases in {place}"
    elif options.server is not None:
        store = "a PostgreSQL server that was named"
    else:
        store = f"PostgreSQL with its own defaults (fsync and synchronous_commit on), data in {place}"
    return f"Python {platform.python_version()}, {os.cpu_count()} processors, {store}"


def _refuse(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
