"""What a running attempt has said: numbered on over all attempts of its task, the newest kept."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.contract.workers import OutputChunk
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.executions import OutputRow, TaskRow


def record(uow: UnitOfWork, task: TaskRow, chunks: Sequence[OutputChunk]) -> None:
    """Add what is new of these to the output of the running attempt. A worker that has got no answer sends them again;
    one that is too large is dropped, since the body that said it can't be told any more."""
    limits = uow.config.limits
    last_seq = task.output_seq
    for chunk in chunks:
        if chunk.seq <= last_seq:
            continue
        last_seq = chunk.seq
        if len(memoryview(chunk.data)) <= limits.output_chunk_bytes:
            uow.changes.output.append(
                OutputRow(
                    execution_id=task.execution_id,
                    task_no=task.task_no,
                    seq=last_seq,
                    attempt=task.attempt,
                    at=uow.now,
                    data=chunk.data,
                )
            )
    if last_seq == task.output_seq:
        return
    task.output_seq = last_seq
    if last_seq > limits.output_chunks_per_task:
        uow.changes.trimmed_output[task.execution_id, task.task_no] = last_seq - limits.output_chunks_per_task
    uow.touch_task(task)
