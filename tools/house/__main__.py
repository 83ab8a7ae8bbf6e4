"""`python -m tools.house`: prints the numbers, and fails when one is worse than its limit in tools/house.toml."""

from __future__ import annotations

import argparse
import gc
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.house import sizes
from tools.house.copying import copying
from tools.house.knots import knots
from tools.house.limits import fails, tightened, verdict
from tools.house.measure import Measure
from tools.house.records import near_copies
from tools.house.repeats import repeats
from tools.house.sources import Source, read
from tools.house.touched import touched, words_by_file

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "tools" / "house.toml"


def measures(sources: Sequence[Source], settings: Mapping[str, Any]) -> list[Measure]:
    exemplars = settings["exemplars"]
    words = words_by_file(sources, exemplars["without"])
    return [
        near_copies(sources),
        copying(sources),
        repeats(sources),
        *knots(sources),
        sizes.common_names(sources),
        *sizes.functions(sources),
        *touched("operation", exemplars["operations"], words),
        *touched("table", exemplars["tables"], words),
    ]


def report(sources: Sequence[Source], found: Sequence[Measure], limits: Mapping[str, int]) -> Iterator[str]:
    yield f"{'folder':16}{'files':>7}{'lines':>8}{'generated':>11}{'sql':>7}"
    for name, files, lines, generated, sql in sizes.folders(sources):
        yield f"{name:16}{files:7}{lines:8}{generated:11}{sql:7}"
    yield f"\n{'lines of a':16}{'count':>7}{'median':>8}{'p90':>6}{'p99':>6}{'longest':>9}"
    for name, lengths in (("function", sizes.function_lengths(sources)), ("module", sizes.module_lengths(sources))):
        spread = sizes.Spread.of(lengths.values())
        yield f"{name:16}{spread.number:7}{spread.median:8}{spread.p90:6}{spread.p99:6}{spread.longest:9}"
    yield f"\n{'ratio':24}{'is':>6}{'limit':>7}"
    for measure in found:
        said = verdict(measure, limits)
        row = f"{measure.name:24}{measure.value:6}{limits.get(measure.name, '-'):>7}  {measure.means}"
        yield f"{row}; {said}" if said else row


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--list", metavar="RATIO", help="show the places that one ratio was counted in")
    parser.add_argument("--tighten", action="store_true", help="lower the limits to what the code keeps by now")
    asked = parser.parse_args()
    settings = tomllib.loads(SETTINGS.read_text("utf-8"))
    source, limits = settings["source"], settings["limits"]
    sources = read([ROOT / folder for folder in source["folders"]], source["generated"])
    found = measures(sources, settings)
    if asked.list:
        places = {measure.name: measure.places for measure in found}
        if asked.list not in places:
            parser.error(f"there is no ratio {asked.list}; there are {', '.join(places)}")
        _say(*places[asked.list])
        return 0
    _say(*report(sources, found, limits))
    if asked.tighten:
        SETTINGS.write_text(tightened(SETTINGS.read_text("utf-8"), found, limits), "utf-8")
        return 0
    failed = [measure.name for measure in found if fails(measure, limits)]
    for name in failed:
        _say(f"{name} does not keep its limit in tools/house.toml; its places: python -m tools.house --list {name}")
    return 1 if failed else 0


def _say(*lines: str) -> None:
    for line in lines:
        print(line)  # noqa: T201 - its answer


if __name__ == "__main__":
    gc.disable()  # half a million nodes that all live until the end: looking for garbage takes longer than parsing
    sys.exit(main())
