"""Signals that nobody has read: dead letters, or the next run's. Which ones were read, only the program can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast.errors import Evicted
from holdfast.frontends.python.program import program_maker
from holdfast.model import events as e
from holdfast.model.executions import DeadLetter, State
from holdfast.replay.machine import Machine
from holdfast.store.protocol import TaskKey
from verification.invariants import Record, Violation
from verification.simulation.node import ORG
from verification.simulation.programs import REGISTRY
from verification.simulation.redone import Lines

_OUTSIDE = frozenset({State.TERMINATED, State.TIMED_OUT})


def check_letters(
    letters: Mapping[TaskKey, DeadLetter], lines: Lines, chains: Mapping[str, Sequence[Record]]
) -> Iterator[Violation]:
    dead: dict[str, set[int]] = {}
    for (key, seq), letter in letters.items():
        if letter.settled:
            continue
        dead.setdefault(key, set()).add(seq)
        if not letter.reason:
            yield Violation("I06", key, seq, "is a dead letter without a reason")
    by_id = lines.by_id
    for key in dead.keys() - by_id.keys():
        yield Violation("I06", key, 0, "has dead letters, and is not there")
    # Those that have completed say themselves what they have taken, see `answers`.
    said = {record.execution_row.id for chain in chains.values() if _completed(chain) for record in chain}
    for record in by_id.values():
        signals = {event.seq for event in record.history if isinstance(event.body, e.SignalReceived)}
        mine = dead.get(record.execution_row.id, set())
        for seq in mine - signals:
            yield Violation("I06", record.execution_row.id, seq, "is a dead letter, and no signal")
        if signals and record.execution_row.id not in said:
            yield from _left(record, lines, signals, mine & signals)


def _completed(chain: Sequence[Record]) -> bool:
    return chain[-1].execution_row.state is State.COMPLETED


def _left(record: Record, lines: Lines, signals: set[int], dead: set[int]) -> Iterator[Violation]:
    """What a closed run has not read is dead or carried over, and nothing else is. What one that goes on after a reset
    finds in its queues is no dead letter any more."""
    execution_row, settled = record.execution_row, lines.settled.get(record.execution_row.id, set())
    found, how = dead, "dead"
    if execution_row.state is State.CONTINUED:
        successor = lines.by_id.get(execution_row.successor or "")
        found, how = _carried(successor) if successor is not None else set(), "carried over"
        if dead:
            yield Violation("I06", execution_row.id, min(dead), "is a dead letter of a run that goes on")
        settled = set()
    unseen = {seq for seq in signals if seq > _seen(record)}
    if execution_row.state in _OUTSIDE and found == unseen - settled:
        return
    try:
        unread = unseen | _unread(record)
    except (Exception, Evicted) as error:  # noqa: BLE001 - whatever a broken history does to it is a finding
        yield Violation("I18", execution_row.id, 0, f"can't be played again: {error!r}")
        return
    # What its program has seen and not taken only the program knows: somebody has to ask for it to be buried.
    expected = unseen if execution_row.state in _OUTSIDE else set() if execution_row.is_open else unread
    if lost := expected - found - settled:
        yield Violation(
            "I06",
            execution_row.id,
            min(lost),
            f"{execution_row.state}: nobody has read {sorted(lost)}, which are not {how}",
        )
    if again := found & settled:
        yield Violation(
            "I07", execution_row.id, min(again), f"{sorted(again)} went to the execution that goes on, and are dead"
        )
    if twice := found - unread:
        yield Violation(
            "I07",
            execution_row.id,
            min(twice),
            f"{execution_row.state}: {sorted(twice)} were read, and are {how} as well",
        )


def _seen(record: Record) -> int:
    return max((event.body.up_to for event in record.history if isinstance(event.body, e.TurnEvent)), default=0)


def _carried(successor: Record) -> set[int]:
    return {
        event.body.carried_from
        for event in successor.history
        if isinstance(event.body, e.SignalReceived) and event.body.carried_from is not None
    }


def _unread(record: Record) -> set[int]:
    """Those that the program, played again, has left in its queues."""
    started = record.history[0].body
    assert isinstance(started, e.WorkflowStarted), "checked before"
    definition = next(found for found in REGISTRY.workflows if found.kind == started.kind)
    machine = Machine(program_maker(definition, ORG, record.execution_row.id))
    try:
        machine.replay(record.history)
        return set(machine.unread())
    finally:
        machine.close()
