"""The time a claim takes when very many executions wait to be claimed: it should not depend on their number.

Each claim takes ten turns, or ten tasks, from one queue, or from a hundred, with the heads of their executions, in a
transaction that is undone; and from one where as many stand before them that only other workers know, compared with a
queue without those. The rows were copied in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final

from bench.claiming import KIND, TASK_KIND, VERSION, claim_ms, plan_of_claim, prepare, task_claim, turn_claim
from bench.figures import Figure, percentile
from bench.loading import HEAD, READY, copy, head, ids, ready
from bench.server import connected
from bench.setting import Setting

FULL = {"sizes": [100, 1_000, 10_000, 100_000], "queues": 100, "samples": 200}
QUICK = {"sizes": [100, 1_000, 10_000], "queues": 100, "samples": 30}

_TASK: Final = [
    "execution_id",
    "task_no",
    "org",
    "kind",
    "queue",
    "priority",
    "input",
    "retry",
    "timeouts",
    "scheduled_at",
    "not_before_at",
    "attempt",
    "nonce",
    "deferred",
]
_FLAT: Final = 2.0
_ONE_QUEUE: Final = "of one queue"
_BEHIND: Final = "behind those of others"


def run(setting: Setting) -> list[Figure]:
    return asyncio.run(_run(setting))


async def _run(setting: Setting) -> list[Figure]:
    sizes, figures = setting["sizes"], []
    found: dict[str, dict[int, float]] = {}
    for size in sizes:
        url = setting.url(f"waiting_{size}")
        await prepare(url)
        for name, value in (await connected(url, lambda connection: _measure(connection, setting, size))).items():  # noqa: B023 - called at once
            found.setdefault(name, {})[size] = value
    for name, by_size in found.items():
        alone = name.replace(_BEHIND, _ONE_QUEUE) if _BEHIND in name else None
        figures.append(
            Figure(
                name=f"{name}, {sizes[-1]:,} waiting, p50",
                figure=by_size[sizes[-1]],
                unit="ms",
                yardstick=found[alone][sizes[-1]] if alone else by_size[sizes[0]],
                yardstick_name="without them, ms" if alone else f"{sizes[0]:,} waiting, ms",
                at_most=_FLAT,
                of_ratio=True,
            )
        )
        figures += [
            Figure(name=f"{name}, {size:,} waiting, p50", figure=by_size[size], unit="ms") for size in sizes[1:-1]
        ]
    return figures


async def _measure(connection: Any, setting: Setting, size: int) -> dict[str, float]:
    queues = tuple(f"q{number}" for number in range(setting["queues"]))
    await _fill(connection, size, ("default",), 0)
    await _fill(connection, size, queues, 1)
    await _fill(connection, size, ("shared",), 2, kind="unknown", task_kind="unknown")
    await _fill(connection, 10, ("shared",), 0)
    await connection.execute("ANALYZE")
    found = {}
    for name, plan in {
        f"turns {_ONE_QUEUE}": turn_claim(("default",)),
        f"turns of {len(queues)} queues": turn_claim(queues),
        f"tasks {_ONE_QUEUE}": task_claim(("default",)),
        f"tasks of {len(queues)} queues": task_claim(queues),
        f"turns {_BEHIND}": turn_claim(("shared",)),
        f"tasks {_BEHIND}": task_claim(("shared",)),
    }.items():
        await claim_ms(connection, plan, 5, 10)
        took = await claim_ms(connection, plan, setting["samples"], None)
        found[name] = percentile(took, 50)
    setting.tell(f"{size:,} waiting: " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in found.items()))
    if size == setting["sizes"][-1]:
        setting.tell("the plan of a claim:\n" + await plan_of_claim(connection))
    return found


async def _fill(
    connection: Any, size: int, queues: tuple[str, ...], lot: int, *, kind: str = KIND, task_kind: str = TASK_KIND
) -> None:
    """So many executions that wait for a turn, each with a task that waits, too."""
    first_us = time.time_ns() // 1000 - (lot + 1) * 10 * size - 60_000_000
    made = [(key, at, queues[number % len(queues)]) for number, (key, at) in enumerate(ids(size, first_us, 10))]

    def heads() -> Iterator[tuple[Any, ...]]:
        return (head(key, at, kind=kind, version=VERSION, queue=queue) for key, at, queue in made)

    def readies() -> Iterator[tuple[Any, ...]]:
        return (ready(key, at, kind=kind, version=VERSION, queue=queue) for key, at, queue in made)

    def tasks() -> Iterator[tuple[Any, ...]]:
        return (
            (key, 1, "default", task_kind, queue, 0, "null", "{}", "{}", at, 0, 0, 0, False) for key, at, queue in made
        )

    await copy(connection, "holdfast_executions", HEAD, heads())
    await copy(connection, "holdfast_ready", READY, readies())
    await copy(connection, "holdfast_tasks", _TASK, tasks())
