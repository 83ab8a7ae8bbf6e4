"""What a running attempt has said: numbered on over all attempts of its task, the newest kept."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.contract.workers import OutputChunk
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.executions import OutputRow, TaskRow


def record(ws: Workspace, task: TaskRow, chunks: Sequence[OutputChunk]) -> None:
    """Add what is new of these to the output of the running attempt. A worker that has got no answer sends them again;
    one that is too large is dropped, since the body that said it can't be told any more."""
    limits = ws.config.limits
    said = task.output_seq
    for chunk in chunks:
        if chunk.seq <= said:
            continue
        said = chunk.seq
        if len(memoryview(chunk.data)) <= limits.output_chunk_bytes:
            ws.changes.output.append(
                OutputRow(
                    execution_id=task.execution_id,
                    task_no=task.task_no,
                    seq=said,
                    attempt=task.attempt,
                    at=ws.now,
                    data=chunk.data,
                )
            )
    if said == task.output_seq:
        return
    task.output_seq = said
    if said > limits.output_chunks_per_task:
        ws.changes.trimmed_output[task.execution_id, task.task_no] = said - limits.output_chunks_per_task
    ws.touch_task(task)
