"""What a benchmark reports: figures, what they are compared with, and whether they are good enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number.

    `yardstick` is the same work done without Holdfast, in the same unit, measured next to it; `ratio` is figure by
    yardstick. A target is a bound on the figure, or on the ratio when `of_ratio` is set.
    """

    name: str
    figure: float
    unit: str
    yardstick: float | None = None
    yardstick_name: str = ""
    at_least: float | None = None
    at_most: float | None = None
    of_ratio: bool = False

    @property
    def ratio(self) -> float | None:
        return self.figure / self.yardstick if self.yardstick else None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        judged = self.ratio if self.of_ratio else self.figure
        if judged is None or (self.at_least is None and self.at_most is None):
            return None
        return (self.at_least is None or judged >= self.at_least) and (self.at_most is None or judged <= self.at_most)


def middle(figures: Sequence[Figure]) -> dict[str, Any]:
    """Repetitions of one figure as one: the median, with the extremes next to it."""
    first = figures[0]
    yardsticks = [figure.yardstick for figure in figures if figure.yardstick is not None]
    values = asdict(first) | {
        "figure": median(figure.figure for figure in figures),
        "yardstick": median(yardsticks) if yardsticks else None,
    }
    # Ratios are taken within a repetition, where figure and yardstick saw the same machine.
    ratios = [figure.ratio for figure in figures if figure.ratio is not None]
    ratio = median(ratios) if ratios else None
    judged = Figure(**(values | ({"figure": ratio, "yardstick": 1.0} if first.of_ratio and ratio is not None else {})))
    return {
        "name": first.name,
        "figure": _short(values["figure"]),
        "unit": first.unit,
        "min": _short(min(figure.figure for figure in figures)),
        "max": _short(max(figure.figure for figure in figures)),
        "yardstick": _yardstick(values),
        "ratio": _short(ratio),
        "target": _target(first),
        "met": judged.met,
    }


def line(name: str, repetitions: Sequence[Sequence[Figure]], parameters: dict[str, Any]) -> dict[str, Any]:
    """The one line of a benchmark: its first figure at the top, the others under `also`. `met`: no target is missed."""
    merged = [middle(same) for same in zip(*repetitions, strict=True)]
    first = merged[0]
    return {
        "name": name,
        "measures": first["name"],
        **{key: value for key, value in first.items() if key not in {"name", "met"}},
        "met": all(figure["met"] is not False for figure in merged),
        "repetitions": len(repetitions),
        "parameters": parameters,
        "also": merged[1:],
    }


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that `percent` of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    rank = -(-percent * len(ordered) // 100)
    return ordered[max(rank, 1) - 1]


def _yardstick(values: dict[str, Any]) -> dict[str, Any] | None:
    if values["yardstick"] is None:
        return None
    return {"name": values["yardstick_name"], "figure": _short(values["yardstick"])}


def _target(figure: Figure) -> dict[str, Any] | None:
    if figure.at_least is None and figure.at_most is None:
        return None
    bound = {"at_least": figure.at_least} if figure.at_least is not None else {"at_most": figure.at_most}
    return {"of": "ratio" if figure.of_ratio else "figure", **bound}


def _short(value: float | None) -> float | None:
    """Four significant digits: more would only be noise."""
    if value is None or value == 0:
        return value
    return float(f"{value:.4g}")
