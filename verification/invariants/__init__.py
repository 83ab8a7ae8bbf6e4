"""What must hold for any set of executions, whatever has happened to the processes that ran them.

    read(store) ─► records ─► check(records) ─► violations          check_growth(before, after) ─► violations

Owns the checks only: it reads through the `Store` protocol, changes nothing, and knows no rule of the engine, so that a
wrong rule can't hide itself. Each violation names its invariant:

    I01  sequence numbers are exactly 1..n and the head says n; what was once read never changes; a reset copies exactly
    I03  the first event is WORKFLOW_STARTED, there is one, and its request id started nothing else
    I04  at most one terminal event; it is the last, and the head's state agrees with it
    I05  event times never decrease
    I06  what a run left unread is in the next one, once and in order; a signal between workflows is in both histories
    I07  a request id has brought at most one signal
    I09  the head has counted every signal of the history once
    I10  whatever is asked for and answered (tasks, timers, steps, children, signals to others, updates, waits,
         promises): each number made once and in order, one outcome each, after it was asked for
    I13  a timer never fires before it is due, twice, or after it was cancelled; nor does an execution or a promise time
         out early
    I15  a child has its parent's event, a parent its children's ends, each as it was; children that hang on their
         parent are counted, and none does for long once the parent is closed; what becomes of them then is what their
         parent has asked for
    I16  an execution at rest has seen everything and waits for something that exists   (needs the rows)
    I17  a workflow id never has two open executions
    I19  a closed execution has left no ready row, task, timer or subscription behind   (needs the rows)
    I20  a subscription belongs to a wait that is open, and the head has counted it     (needs the rows)
    I21  broadcasts of one name come in the order they were thrown; a message reaches one execution
    I22  the row of a promise says what the history says                                (needs the rows)
"""

from __future__ import annotations

from collections.abc import Iterable

from verification.invariants.among import check_among
from verification.invariants.commands import check_commands
from verification.invariants.growth import check_growth
from verification.invariants.histories import check_history
from verification.invariants.outside import check_messages, check_outside
from verification.invariants.records import Record, Violation, read
from verification.invariants.rows import check_rows

__all__ = ["Record", "Violation", "check", "check_growth", "read"]


def check(records: Iterable[Record], *, at_rest: bool = False) -> list[Violation]:
    """All violations, sorted. Empty is what one hopes for.

    The records are all of an org, as of one moment. `at_rest`: services have run since the last event, so that nothing
    is left to be done for those who have closed.
    """
    kept = list(records)
    found: list[Violation] = []
    for record in kept:
        found.extend(check_history(record))
        found.extend(check_commands(record))
        found.extend(check_rows(record))
        found.extend(check_outside(record))
    found.extend(check_among(kept, at_rest=at_rest))
    found.extend(check_messages(kept))
    return sorted(found)
