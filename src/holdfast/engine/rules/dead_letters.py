"""Ending dead letters."""

from __future__ import annotations

from msgspec import structs

from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import DeadLetterNotFound
from holdfast.model.events import SignalReceived
from holdfast.model.executions import DeadLetter
from holdfast.store.protocol import TaskKey


def find(uow: UnitOfWork, org: str, key: TaskKey) -> tuple[DeadLetter, SignalReceived | None]:
    """The dead letter and its signal, unless it is settled."""
    letter, signal = uow.loaded.dead_letters.get(key, (None, None))
    if letter is None or letter.org != org or letter.settled:
        raise DeadLetterNotFound(
            f"signal {key[1]} of execution {key[0]} is no dead letter"
            f"{' any more: it was redelivered or removed' if letter is not None and letter.org == org else ''}",
            execution_id=key[0],
            seq=key[1],
        )
    return letter, signal


def settle(uow: UnitOfWork, letter: DeadLetter, signal: SignalReceived | None) -> None:
    """It is one no more, and never will be again."""
    key = (letter.execution_id, letter.seq)
    uow.changes.settled_letters.append(key)
    uow.loaded.dead_letters[key] = structs.replace(letter, settled=True), signal
