"""Two reads of the same executions: the later one shows what the earlier one showed, and perhaps more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from verification.invariants.records import Record, Violation, as_stored


def check_growth(before: Iterable[Record], after: Iterable[Record]) -> list[Violation]:
    """Histories only grow: what an earlier read showed is the beginning of what a later one shows."""
    later = {record.execution_row.id: record for record in after}
    found: list[Violation] = []
    for record in before:
        now = later.get(record.execution_row.id)
        if now is None:
            found.append(Violation("I01", record.execution_row.id, 0, "was there before and is gone"))
            continue
        found.extend(_grown(record, now))
    return sorted(found)


def _grown(before: Record, after: Record) -> Iterator[Violation]:
    events = {event.seq: as_stored(event) for event in after.history}
    for event in before.history:
        if events.get(event.seq) != as_stored(event):
            yield Violation(
                "I01", before.execution_row.id, event.seq, f"{event.type} was read before and is now different"
            )
