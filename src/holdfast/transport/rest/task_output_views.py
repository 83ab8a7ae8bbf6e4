"""A task's output and progress as JSON, and back."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.contract.task_output import OutputPage, TaskEnd, TaskFeedItem, TaskFeedItemKind
from holdfast.model.executions import OutputRow
from holdfast.model.values import NULL
from holdfast.transport.rest.bodies import null
from holdfast.transport.rest.reading import read_failure
from holdfast.transport.rest.times import instant, micros
from holdfast.transport.rest.views import FailureView, View, failure_view


class OutputChunkView(View, frozen=True, kw_only=True):
    """One thing that a task has said. `dropped`: how many before it are not kept any more."""

    sequence: int
    attempt: int
    at: datetime
    value: Raw = msgspec.field(default_factory=null)
    dropped: int = 0


class OutputPageView(View, frozen=True, kw_only=True):
    """The next page is `after` the last one's sequence."""

    workflow_execution_id: str
    task_number: int
    chunks: tuple[OutputChunkView, ...]
    more: bool


class TaskNewsView(View, frozen=True, kw_only=True):
    """What is told of a task. `output`: `sequence`, `value`, `dropped`. `progress`: `progress`. `attempt`: one has
    begun, and `failure` says why the one before is over. `ended`: `status`, and `failure` if it failed."""

    kind: TaskFeedItemKind
    attempt: int
    at: datetime
    sequence: int | UnsetType = UNSET
    value: Raw | UnsetType = UNSET
    dropped: int | UnsetType = UNSET
    progress: float | UnsetType = UNSET
    status: TaskEnd | UnsetType = UNSET
    failure: FailureView | UnsetType = UNSET


def chunk_views(chunks: Iterable[OutputRow], after: int) -> tuple[OutputChunkView, ...]:
    """`after` is the number that was asked with."""
    views = []
    for chunk in chunks:
        views.append(
            OutputChunkView(
                sequence=chunk.seq,
                attempt=chunk.attempt,
                at=instant(chunk.at),
                value=chunk.data,
                dropped=chunk.seq - after - 1,
            )
        )
        after = chunk.seq
    return tuple(views)


def read_page(view: OutputPageView) -> OutputPage:
    return OutputPage(
        tuple(
            OutputRow(
                execution_id=view.workflow_execution_id,
                task_no=view.task_number,
                seq=chunk.sequence,
                attempt=chunk.attempt,
                at=micros(chunk.at),
                data=chunk.value,
            )
            for chunk in view.chunks
        ),
        view.more,
    )


def feed_item_view(item: TaskFeedItem) -> TaskNewsView:
    is_output = item.kind is TaskFeedItemKind.OUTPUT
    return TaskNewsView(
        kind=item.kind,
        attempt=item.attempt,
        at=instant(item.at),
        sequence=item.seq if is_output else UNSET,
        value=item.data if is_output else UNSET,
        dropped=item.dropped if is_output else UNSET,
        progress=UNSET if item.progress is None else item.progress,
        status=item.status or UNSET,
        failure=failure_view(item.failure) or UNSET,
    )


def read_feed_item(view: TaskNewsView) -> TaskFeedItem:
    return TaskFeedItem(
        kind=view.kind,
        attempt=view.attempt,
        at=micros(view.at),
        seq=view.sequence or 0,
        data=NULL if isinstance(view.value, UnsetType) else view.value,
        dropped=view.dropped or 0,
        progress=None if isinstance(view.progress, UnsetType) else view.progress,
        status=None if isinstance(view.status, UnsetType) else view.status,
        failure=None if isinstance(view.failure, UnsetType) else read_failure(view.failure),
    )
