"""What task bodies say, until the engine has it: kept, bounded, sent in time."""

from typing import Any

from msgspec import Raw

from holdfast.contract.workers import OutputLimits, TaskBeat, TaskWork
from holdfast.model.values import TaskTimeouts, Token
from holdfast.worker.output import FLUSH_CHUNKS, WAITING_BYTES, Outputs

LIMITS = OutputLimits(64 * 1024, 100)


def work(task_no: int = 1, attempt: int = 1, output_seq: int = 0) -> TaskWork:
    return TaskWork(
        execution_id="e",
        task_no=task_no,
        kind="k",
        token=Token(attempt, 7),
        timeouts=TaskTimeouts(),
        scheduled_at=0,
        started_at=0,
        output_seq=output_seq,
    )


def outputs() -> Outputs:
    return Outputs(lambda: LIMITS)


def beats(taken: Any) -> list[TaskBeat]:
    return [TaskBeat(execution_id=key[0], task_no=key[1], token=key[2], output=said) for key, said in taken.items()]


def seqs(chunks: Any) -> list[int]:
    return [chunk.seq for chunk in chunks]


def test_numbers_continue_from_the_attempts_before():
    said = outputs()
    for _ in range(3):
        said.add(work(output_seq=40), Raw(b"1"))

    assert [41, 42, 43] == seqs(said.finish(work(output_seq=40)))


def test_what_is_not_confirmed_is_taken_again():
    """Whether it was recorded is not known."""
    said = outputs()
    said.add(work(), Raw(b"1"))
    first = said.take()
    said.add(work(), Raw(b"2"))
    second = said.take()

    assert [[1], [1, 2]] == [seqs(chunks) for taken in (first, second) for chunks in taken.values()]


def test_what_is_confirmed_is_forgotten():
    """And the report of the attempt carries only the rest."""
    said = outputs()
    said.add(work(), Raw(b"1"))
    taken = said.take()
    said.add(work(), Raw(b"2"))
    said.confirm(beats(taken))

    assert [2] == seqs(said.finish(work()))
    assert {} == said.take()


def test_attempts_of_one_task_are_not_mixed_up():
    """A body that no longer counts may still be talking."""
    said = outputs()
    said.add(work(attempt=1), Raw(b"1"))
    said.add(work(attempt=2), Raw(b"2"))

    assert [b"2"] == [bytes(chunk.data) for chunk in said.finish(work(attempt=2))]


def test_the_oldest_are_dropped_beyond_the_limit():
    """By count, and by bytes; the numbers tell."""
    said = outputs()
    for _ in range(250):
        said.add(work(), Raw(b"1"))
    assert list(range(151, 251)) == seqs(said.finish(work()))

    large = Raw(b'"' + b"x" * 60_000 + b'"')
    for _ in range(100):
        said.add(work(), large)
    kept = said.finish(work())
    assert 100 == kept[-1].seq
    assert sum(len(memoryview(chunk.data)) for chunk in kept) <= WAITING_BYTES


def test_it_is_time_when_the_first_has_waited_or_many_wait():
    """Whoever sends is woken by the first, and at once when there are many."""
    woken: list[float | None] = []
    said = outputs()
    said.wake = lambda: woken.append(said.due_in_s())
    assert said.due_in_s() is None
    for _ in range(FLUSH_CHUNKS):
        said.add(work(), Raw(b"1"))

    first, many = woken
    assert first is not None and 0 < first <= 0.1  # noqa: PT018 - one fact
    assert many is not None and many <= 0  # noqa: PT018 - as above
    said.take()
    assert said.due_in_s() is None


def test_what_nobody_has_answered_is_sent_again_later():
    said = outputs()
    said.add(work(), Raw(b"1"))
    said.send_again(beats(said.take()))

    due_in_s = said.due_in_s()
    assert due_in_s is not None
    assert due_in_s > 0
    assert [[1]] == [seqs(chunks) for chunks in said.take().values()]
