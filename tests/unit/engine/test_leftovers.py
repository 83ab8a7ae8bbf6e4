"""What commits leave to do: in order, at the writer's waits, and at once when nothing else is to be written."""

import asyncio
from functools import partial

import pytest

from holdfast.engine.leftovers import Leftovers
from tests.conftest import until


@pytest.fixture
async def leftovers() -> Leftovers:
    return Leftovers(asyncio.get_running_loop())


def left(leftovers: Leftovers, done: list[str], *names: str) -> None:
    for name in names:
        leftovers.add(partial(done.append, f"{name} answered"), partial(done.append, f"{name} handed"))


async def test_callers_are_answered_while_a_batch_loads_and_workers_get_theirs_while_it_is_written(leftovers):
    """Nothing happens before the writer waits."""
    done: list[str] = []
    left(leftovers, done, "first")
    assert [] == done

    leftovers.meanwhile(writing=False)
    await asyncio.sleep(0)
    assert ["first answered"] == done

    leftovers.meanwhile(writing=True)
    await asyncio.sleep(0)
    assert ["first answered", "first handed"] == done


async def test_everything_is_done_in_the_order_in_which_it_was_left(leftovers):
    """Also when a batch had nothing to write: what it would have done comes with the next."""
    done: list[str] = []
    left(leftovers, done, "first", "second")

    leftovers.meanwhile(writing=False)
    await asyncio.sleep(0)

    assert ["first answered", "first handed", "second answered"] == done


async def test_without_a_batch_to_follow_it_is_done_at_once(leftovers):
    done: list[str] = []
    left(leftovers, done, "first")

    leftovers.soon()
    await asyncio.sleep(0)

    assert ["first answered", "first handed"] == done


async def test_a_slow_database_keeps_nobody_waiting(leftovers):
    """The writer says nothing: it is done all the same, in a moment."""
    done: list[str] = []
    left(leftovers, done, "first")

    await until(lambda: len(done) == 2)


async def test_one_that_breaks_does_not_stop_the_others(leftovers, caplog):
    def broken() -> None:
        raise ZeroDivisionError

    done: list[str] = []
    leftovers.add(broken, lambda: done.append("handed"))
    leftovers.do_all()

    assert ["handed"] == done
    assert "could not be answered in full" in caplog.text
