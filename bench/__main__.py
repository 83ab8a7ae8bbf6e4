"""`python -m bench`: see the package's text. One JSON line per benchmark on standard output, then a table of all."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
from pathlib import Path

from bench.catalogue import NAMES, about
from bench.runner import run_all
from bench.setting import ROOT, file_system, is_disk
from bench.table import table


def main() -> int:
    options = _parser().parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(f"{name:<11} {about(name)}" for name in NAMES))
        return 0
    folder = (options.dir or ROOT.parent).resolve()
    if not folder.is_dir():
        print(f"{folder} is not a folder: create it first, or give another with --dir", file=sys.stderr)
        return 2
    if not is_disk(folder):
        print(f"{folder} is memory, not a disk: what is measured there says nothing", file=sys.stderr)
    print(_where(folder), file=sys.stderr)
    repetitions = options.repeat or (1 if options.quick else 3)
    lines = []
    for found in run_all(options.names or NAMES, folder=folder, repetitions=repetitions, quick=options.quick):
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
    return parser


def _where(folder: Path) -> str:
    return (
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} processors, "
        f"databases in {folder} ({file_system(folder) or 'unknown file system'}), synchronous=FULL"
    )


if __name__ == "__main__":
    sys.exit(main())
