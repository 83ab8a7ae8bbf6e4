"""How fast filters over published events are evaluated and compiled, and where a hostile one is stopped.

Evaluations of one compiled filter against one small payload; compilations without the cache. The hostile figure is the
longest of several that use up their whole budget: how long one caller can hold up the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.figures import Figure
from bench.setting import Setting
from holdfast.expressions import compile_filter

FULL = {"evaluations": 100_000, "compilations": 5_000, "rounds": 5}
QUICK = {"evaluations": 5_000, "compilations": 300, "rounds": 2}

PAYLOAD = {
    "type": "order.paid",
    "amount": 140,
    "customer": {"id": "c-17", "country": "DE"},
    "items": [{"sku": f"s-{number}", "count": number} for number in range(5)],
}
TWO = 'input.type == "order.paid" && input.amount > 100'
LOOP = 'input.type == "order.paid" && input.amount > 100 && input.items.exists(i, i.sku == "s-4")'
MISSING = 'input.type == "order.paid" && input.total > 100'
PATTERN = 'input.customer.id.matches("^c-[0-9]+$")'
HOSTILE = [
    ("input.l.map(a, input.l.map(b, input.l.map(c, a * b * c))).size() == 1", {"l": list(range(300))}),
    ("input.l.all(a, a.x.y == 1 || a.z == 1)", {"l": list(range(100_000))}),
    ("[input.s]" + ".map(x, x + x)" * 40 + " == []", {"s": "0123456789"}),
    ("input.l.all(x, !input.s.contains(input.n))", {"l": [0] * 1000, "s": "a" * 29_000, "n": "a" * 98 + "b"}),
    ("input.l.all(x, !input.s.matches('(a|b)*a(a|b){80}c'))", {"l": [0] * 1000, "s": "abbab" * 100}),
]


def run(setting: Setting) -> list[Figure]:
    evaluations, rounds = setting["evaluations"], setting["rounds"]
    two, loop, missing, pattern = (
        _per_second(_evaluation(text), evaluations, rounds) for text in (TWO, LOOP, MISSING, PATTERN)
    )
    texts = iter(range(10**9))
    # Each text is new, so that the cache has none of them.
    compiled = _per_second(
        lambda: compile_filter(f'input.type == "order.paid" && input.amount > {next(texts)}'),
        setting["compilations"],
        rounds,
    )
    stopped = max(_milliseconds(text, payload, rounds) for text, payload in HOSTILE)
    setting.tell(
        f"{two:,.0f} evaluations/s, {compiled:,.0f} compilations/s, hostile ones stopped after {stopped:.0f} ms"
    )
    return [
        Figure(name="two comparisons", figure=two, unit="evaluations/s", at_least=100_000),
        Figure(name="two comparisons and exists over 5", figure=loop, unit="evaluations/s"),
        Figure(name="a missing field", figure=missing, unit="evaluations/s"),
        Figure(name="a pattern", figure=pattern, unit="evaluations/s"),
        Figure(name="compiled", figure=compiled, unit="filters/s", at_least=5_000),
        Figure(name="hostile filter stopped", figure=stopped, unit="ms", at_most=50.0),
    ]


def _evaluation(text: str) -> Callable[[], object]:
    matches = compile_filter(text).matches
    return lambda: matches(PAYLOAD)


def _per_second(do: Callable[[], object], count: int, rounds: int) -> float:
    """The best of some rounds: what disturbs a round is not the filter's doing."""
    return count / min(_seconds(do, count) for _ in range(rounds))


def _seconds(do: Callable[[], object], count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        do()
    return time.perf_counter() - began


def _milliseconds(text: str, payload: object, rounds: int) -> float:
    hostile = compile_filter(text)
    assert hostile.evaluate(payload).code == "expression_budget", text
    return min(_seconds(lambda: hostile.evaluate(payload), 1) for _ in range(rounds)) * 1e3
