"""The lines of a run as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_HEAD = ("benchmark", "figure", "", "min – max", "yardstick", "ratio", "target", "met", "machine")
_LEFT = {0, 2}


def table(lines: Sequence[dict[str, Any]]) -> str:
    rows: list[Sequence[str]] = [_HEAD]
    fastest = max((found["machine"]["python_speed"] for found in lines if "machine" in found), default=0)
    for found in lines:
        rows.extend(_rows(found, fastest))
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return "\n".join(_text(row, widths) for row in rows)


def _rows(found: dict[str, Any], fastest: float) -> Iterable[Sequence[str]]:
    name = found["name"]
    if "error" in found:
        yield (f"{name}: {found['error']}", *[""] * (len(_HEAD) - 1))
        return
    figures = [found | {"name": found["measures"], "met": _met_itself(found)}, *found["also"]]
    for figure in figures:
        yield (*_row(f"{name}: {figure['name']}", figure), _machine(found, fastest) if figure is figures[0] else "")


def _machine(found: dict[str, Any], fastest: float) -> str:
    """Bare Python around this measurement, against the best of the run: if it was slow, so is the figure."""
    return f"{found['machine']['python_speed'] / fastest:.0%}" if fastest else ""


def _met_itself(found: dict[str, Any]) -> bool | None:
    """Whether the first figure meets its own target: the line's `met` speaks for all of them."""
    if found["target"] is None:
        return None
    judged = found["ratio"] if found["target"]["of"] == "ratio" else found["figure"]
    if "at_least" in found["target"]:
        return bool(judged >= found["target"]["at_least"])
    return bool(judged <= found["target"]["at_most"])


def _row(name: str, figure: dict[str, Any]) -> Sequence[str]:
    yardstick = figure["yardstick"]
    extremes = figure["min"] != figure["max"]
    return (
        name,
        _number(figure["figure"]),
        figure["unit"],
        f"{_number(figure['min'])} – {_number(figure['max'])}" if extremes else "",
        f"{_number(yardstick['figure'])} {yardstick['name']}" if yardstick else "",
        "" if figure["ratio"] is None else f"{figure['ratio']:.2f}",
        _target(figure["target"]),
        {True: "yes", False: "NO", None: ""}[figure["met"]],
    )


def _target(target: dict[str, Any] | None) -> str:
    if target is None:
        return ""
    sign, bound = ("≥", target["at_least"]) if "at_least" in target else ("≤", target["at_most"])
    return f"{'ratio ' if target['of'] == 'ratio' else ''}{sign} {_number(bound)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _text(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if column in _LEFT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
