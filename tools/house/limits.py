"""What the numbers are compared with: the limits in tools/house.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tools.house.measure import Measure


def verdict(measure: Measure, limits: Mapping[str, int]) -> str:
    """Empty if it is just as allowed."""
    limit = limits.get(measure.name)
    if limit is None:
        return "no limit: add one with --tighten"
    if measure.value > limit:
        return "WORSE than the limit"
    return "better than the limit: lower it" if measure.value < limit else ""


def fails(measure: Measure, limits: Mapping[str, int]) -> bool:
    """Also without a limit: a ratio that nobody holds is not worth printing."""
    return measure.value > limits.get(measure.name, -1)


def tightened(text: str, measures: Iterable[Measure], limits: Mapping[str, int]) -> str:
    """The file with each limit as low as the code allows; none is raised, new ones are added at the end."""
    for measure in measures:
        lowest = min(measure.value, limits.get(measure.name, measure.value))
        line = f"{measure.name} = {lowest}"
        if measure.name in limits:
            text = re.sub(rf"(?m)^{measure.name} = \d+", line, text)
        else:
            text = f"{text.rstrip()}\n{line}\n"
    return text
