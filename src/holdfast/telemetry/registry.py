"""Counters, gauges and histograms, and the text that Prometheus reads (exposition format 0.0.4).

Nothing here takes a lock: everything is counted on the engine's event loop, and rendered there. The number of label
sets of a family is bounded; what comes too late is counted together under `other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

from holdfast.errors import InvalidRequest

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER: Final = "other"
Sample = tuple[str, tuple[str, ...], float]
"""What it is called after the family's name, which label it has more than its family, its value."""
SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
SIZES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)


class Number:
    """One counter or gauge. Add to `value`, or set it: a method call would cost more than the addition."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def samples(self) -> Iterable[Sample]:
        yield "", (), self.value


class Distribution:
    """How often which values came: the counts of a histogram with fixed bounds."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    @property
    def sum(self) -> float:
        return self._sum

    def samples(self) -> Iterable[Sample]:
        total = 0
        for bound, count in zip((*map(_number, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            yield "_bucket", (f'le="{bound}"',), total
        yield "_sum", (), self._sum
        yield "_count", (), total


Child = TypeVar("Child", Number, Distribution)


class Family(Generic[Child]):
    """All series of one name. `most` is how many sets of label values it keeps apart."""

    def __init__(
        self, kind: str, name: str, words: str, *, labels: Sequence[str], make: Callable[[], Child], most: int
    ) -> None:
        self.kind = kind
        self.name = name
        self.words = words
        self.labels = tuple(labels)
        self._make: Callable[[], Child] = make
        self._most = most
        self._children: dict[tuple[str, ...], Child] = {}

    def of(self, *values: str) -> Child:
        """The series with these label values. Keep it where it is counted often."""
        found = self._children.get(values)
        if found is None:
            if len(values) != len(self.labels):
                raise InvalidRequest(f"{self.name} has the labels {', '.join(self.labels) or 'none'}", field="labels")
            if len(self._children) >= self._most:
                values = (OTHER,) * len(values)
            found = self._children.setdefault(values, self._make())
        return found

    def values(self) -> list[tuple[str, ...]]:
        """The label values there are."""
        return list(self._children)

    def clear(self) -> None:
        """Forget all series: those that are read anew at every scrape must not outlive what they were read from."""
        self._children.clear()

    def lines(self, org: str | None = None) -> Iterable[str]:
        """Its series as text; with an org, only those that are not another org's."""
        shown = {values: child for values, child in self._children.items() if self._concerns(values, org)}
        if not shown:
            return
        yield f"# HELP {self.name} {_escaped(self.words, quotes=False)}"
        yield f"# TYPE {self.name} {self.kind}"
        for values, child in shown.items():
            own = list(map(_label, self.labels, values))
            yield from (_line(self.name, own, sample) for sample in child.samples())

    def _concerns(self, values: tuple[str, ...], org: str | None) -> bool:
        return org is None or "org" not in self.labels or values[self.labels.index("org")] == org


class Registry:
    """The families of one engine, in the order they were made."""

    def __init__(self, most_series: int = 200) -> None:
        self._most = most_series
        self.families: dict[str, Family[Number] | Family[Distribution]] = {}

    def counter(self, name: str, words: str, *labels: str) -> Family[Number]:
        return self._add(Family("counter", name, words, labels=labels, make=Number, most=self._most))

    def gauge(self, name: str, words: str, *labels: str) -> Family[Number]:
        return self._add(Family("gauge", name, words, labels=labels, make=Number, most=self._most))

    def histogram(self, name: str, words: str, bounds: Sequence[float], *labels: str) -> Family[Distribution]:
        make = partial(Distribution, bounds)
        return self._add(Family("histogram", name, words, labels=labels, make=make, most=self._most))

    def _add(self, family: Family[Child]) -> Family[Child]:
        if family.name in self.families:
            raise InvalidRequest(f"there is a metric {family.name} already", field="name")
        self.families[family.name] = family
        if not family.labels:
            family.of()  # a series that is not there yet looks like one that does not exist
        return family

    def render(self, org: str | None = None) -> str:
        """Everything, as Prometheus reads it; with an org, nothing of other orgs."""
        lines = [line for family in self.families.values() for line in family.lines(org)]
        return "\n".join((*lines, ""))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def _line(name: str, labels: list[str], sample: Sample) -> str:
    suffix, more, number = sample
    inside = ",".join((*labels, *more))
    return f"{name}{suffix}{{{inside}}} {_number(number)}" if inside else f"{name}{suffix} {_number(number)}"


def _label(name: str, value: str) -> str:
    return f'{name}="{_escaped(value)}"'


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
