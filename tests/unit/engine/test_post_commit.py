"""What commits leave to do: in order, in portions, at the writer's waits, and at once when nothing else is written."""

import asyncio
from collections.abc import Iterator

import pytest

from holdfast.engine.post_commit import PostCommitQueue
from tests.conftest import until


@pytest.fixture
async def post_commit() -> PostCommitQueue:
    return PostCommitQueue(asyncio.get_running_loop())


def left(post_commit: PostCommitQueue, done: list[str], *names: str) -> None:
    """Two portions of answers, one of work."""
    for name in names:
        post_commit.add(portions(done, f"{name} answered", f"{name} told"), portions(done, f"{name} handed"))


def portions(done: list[str], *deeds: str) -> Iterator[None]:
    for deed in deeds:
        done.append(deed)
        yield


async def passes(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_it_is_done_while_the_next_batch_is_written(post_commit):
    """Nothing happens before the writer waits, and nothing of the last commit while it loads."""
    done: list[str] = []
    left(post_commit, done, "first")
    post_commit.writer_idle(writing=False)
    await passes()
    assert [] == done

    post_commit.writer_idle(writing=True)
    await passes()
    assert ["first answered", "first told", "first handed"] == done


async def test_the_loop_gets_its_turn_after_every_portion(post_commit):
    """So the writer can go on when the database has answered."""
    done: list[str] = []
    left(post_commit, done, "first")
    post_commit.writer_idle(writing=True)
    await asyncio.sleep(0)
    assert ["first answered"] == done
    await asyncio.sleep(0)
    assert ["first answered", "first told"] == done


async def test_what_was_left_before_is_continued_with_while_a_batch_loads(post_commit):
    """Everything in the order in which it was left; what the last commit left waits."""
    done: list[str] = []
    left(post_commit, done, "first", "second")
    post_commit.writer_idle(writing=False)
    await passes()
    assert ["first answered", "first told", "first handed"] == done

    post_commit.writer_idle(writing=True)
    await passes()
    assert ["second answered", "second told", "second handed"] == done[3:]


async def test_a_commit_stops_what_was_not_done_of_the_one_before_only_until_the_writer_waits(post_commit):
    done: list[str] = []
    left(post_commit, done, "first")
    post_commit.writer_idle(writing=True)
    await asyncio.sleep(0)
    left(post_commit, done, "second")
    post_commit.writer_idle(writing=False)
    await passes()
    assert ["first answered", "first told", "first handed"] == done


async def test_without_a_batch_to_follow_it_is_done_at_once(post_commit):
    done: list[str] = []
    left(post_commit, done, "first")
    post_commit.run_soon()
    await passes()
    assert ["first answered", "first told", "first handed"] == done


async def test_a_slow_database_keeps_nobody_waiting(post_commit):
    """The writer says nothing: it is done all the same, in a moment. Also when that happens again."""
    done: list[str] = []
    left(post_commit, done, "first")
    await until(lambda: len(done) == 3)
    left(post_commit, done, "second")
    await until(lambda: len(done) == 6)


async def test_one_that_breaks_does_not_stop_the_others(post_commit, caplog):
    def broken() -> Iterator[None]:
        raise ZeroDivisionError
        yield

    done: list[str] = []
    post_commit.add(broken(), portions(done, "handed"))
    post_commit.run_all()

    assert ["handed"] == done
    assert "could not be answered in full" in caplog.text
