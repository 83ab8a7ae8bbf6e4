"""Operations on events, run batch by batch against a database in memory: rolled back and repeated when asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any

from holdfast.config import EngineConfig, StoreConfig
from holdfast.contract.executions import StartWorkflow
from holdfast.contract.workers import CompleteTurn, RegisterWorker
from holdfast.engine.dispatcher import Dispatcher
from holdfast.engine.executions.start import Start
from holdfast.engine.group_commit import Effects, OperationBatch, OperationQueue, PendingOperation
from holdfast.engine.operation import Operation
from holdfast.engine.post_commit import Chunks
from holdfast.engine.turns.complete import Complete
from holdfast.engine.workers.register import Register
from holdfast.model.commands import Command, Turn
from holdfast.model.events import EventReceived
from holdfast.model.values import Token
from holdfast.store.sqlite.cache import Cache
from holdfast.store.sqlite.connections import Database
from holdfast.store.sqlite.load import load
from holdfast.store.sqlite.write import write

ORG = "default"
KIND = "w"


@dataclass(frozen=True)
class Received:
    execution_id: str
    wait_no: int
    event_id: int


class _Nobody:
    peer_writes = 0

    def opened(self, executions: Sequence[tuple[str, str]], peer_writes: int) -> None:
        pass

    def committed(self, effects: Effects, chunk: int) -> Chunks:
        yield from ()

    def data_loss_detected(self) -> None:
        pass


@dataclass
class World:
    """One database and one worker, which holds every execution for ever. Making another one empties the database."""

    config: EngineConfig
    now: int = 1_000_000
    received: list[Received] = field(default_factory=list)

    def __post_init__(self) -> None:
        numbers = count(1)
        self.dispatcher = Dispatcher(suspect_from=self.config.suspect_from)
        self.queue = OperationQueue(self.config, self.dispatcher, lambda: next(numbers), _Nobody())
        self.cache = Cache()
        self.connection = _fresh()
        worker = RegisterWorker(
            org=ORG,
            session="s",
            host="h",
            pid=1,
            builds={(KIND, "1"): "b"},
            turn_slots=10_000,
            task_slots=0,
            lease_s=1e6,
        )
        self.run([Register(worker)])
        self.dispatcher.open(worker)
        self.dispatcher.sessions["s"].more_turns = False

    def run(self, operations: Sequence[Operation[Any, Any]], *, tries: int = 1) -> list[Any]:
        """Answers and refusals. With several tries all but the last are rolled back just before the commit."""
        members = [PendingOperation(operation, Future()) for operation in operations]
        batch = OperationBatch(self.queue, members)
        for left in range(tries - 1, -1, -1):
            self.connection.execute("SAVEPOINT batch")
            loaded = load(self.connection, batch.plan(), self.cache, self.now)
            changes = batch.decide(loaded)
            write(self.connection, changes, self.now)
            if left:
                self.connection.execute("ROLLBACK TO batch")
                self.cache.clear()
            self.connection.execute("RELEASE batch")
        self.cache.absorb(changes)
        batch._reservations.apply()
        for execution_id, event in changes.events:
            if isinstance(event.body, EventReceived):
                self.received.append(Received(execution_id, event.body.wait_no, event.body.event_id))
        return [member.refusal or member.answer for member in members]

    def forget_caches(self) -> None:
        """As after a crash: nothing is known but what is in the database."""
        self.cache.clear()

    def start(self) -> str:
        (answer,) = self.run([Start(StartWorkflow(org=ORG, kind=KIND, workflow_id=None))])
        return str(answer.workflow_execution_id)

    def turn(self, execution_id: str, *commands: Command) -> Complete:
        """What the worker reports of a turn. A turn with commands only: every execution stays leased."""
        epoch, nonce, last_seq = self.connection.execute(
            "SELECT epoch, nonce, last_seq FROM holdfast_executions WHERE id = ?", (execution_id,)
        ).fetchone()
        return Complete(
            CompleteTurn(
                org=ORG,
                execution_id=execution_id,
                token=Token(epoch, nonce),
                base_seq=last_seq,
                worker="s",
                turns=(Turn(up_to=last_seq, commands=tuple(commands)),),
            )
        )

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()


@cache
def _connection() -> sqlite3.Connection:
    return Database(None, StoreConfig(), lambda: 0).open_writer()


def _fresh() -> sqlite3.Connection:
    """An empty database: everything a world does is one transaction, undone when the next one begins."""
    connection = _connection()
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    connection.execute("BEGIN")
    return connection
