"""The toy programs that the tests run."""

from __future__ import annotations

from holdfast import NonRetryable, task
from tests.unit.frontends.toy.language import toy


@task
async def double(number: int) -> int:
    return 2 * number


@task
async def refuses(number: int) -> int:
    raise NonRetryable(f"not {number}")


COUNT = toy(
    "count",
    """
    set total 0
    signal next value
    add total value
    less total 1000000 1
    return total
    """,
)
"""Adds up signals until there are a million."""

HALVES = toy("halves", "task double input twice\nreturn twice")

BUSY = toy(
    "busy",
    """
    set total 0
    fork 13
    fork 18
    signal first word
    task double input twice
    add total twice
    sleep 0.01
    child halves twice four
    add total four
    signal second word
    join
    add total counted
    return total
    set counted 1
    task double counted counted
    signal extra more
    add counted more
    end
    sleep 0.02
    signal extra other
    end
    """,
)
"""Three strands side by side, which wait for everything a toy can wait for."""
