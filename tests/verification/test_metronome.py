"""What the chaos run blames on the machine: only what has really happened, and only for as long."""

from __future__ import annotations

import asyncpg

from tests.conftest import until
from verification.chaos.metronome import Metronome, stalled_us


def test_only_what_lies_within_a_span_is_taken_off():
    stalls = [(10, 20), (30, 40), (90, 100)]

    assert 15 == stalled_us(stalls, 15, 60)
    assert 0 == stalled_us(stalls, 41, 89)
    assert 3 == stalled_us(stalls, 32, 35)


async def test_a_commit_that_has_to_wait_is_a_stall(postgres_url: str):
    """Here for a lock, elsewhere for the disk or the processor."""
    other = await asyncpg.connect(postgres_url)
    async with Metronome(postgres_url) as metronome:
        before = len(metronome.stalls)
        async with other.transaction():
            await other.execute("LOCK TABLE metronome")
            await other.execute("SELECT pg_sleep(0.5)")
        await until(lambda: len(metronome.stalls) > before)
    await other.close()

    assert max(end - begin for begin, end in metronome.stalls) > 200_000
