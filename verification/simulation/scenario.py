"""One scenario: nodes, callers and faults, all from one seed. Trouble for a while, then calm, then the account."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, Final

from holdfast.config import EngineConfig, StoreConfig, WorkerConfig
from holdfast.engine import dispatcher
from holdfast.model.events import HistoryEvent, encode_body
from holdfast.model.values import MICRO
from verification.invariants import Violation, check, check_growth
from verification.invariants.families import check_parent_close
from verification.invariants.rows import check_rows
from verification.memory import MemoryDatabase
from verification.simulation.bodies import Trouble
from verification.simulation.checking import Circumstances, check_all, missed_events, records_of
from verification.simulation.clients import Clients
from verification.simulation.ledger import Ledger
from verification.simulation.loop import PROCESS, Livelock, SimulatedLoop
from verification.simulation.node import Node, Weather
from verification.simulation.programs import ASKED, KIND, LEDGER, REGISTRY, SIGNALS, Maker, Op

START: Final = 1_900_000_000 * MICRO
LEASE_S: Final = 6.0
TROUBLE_S: Final = 2.5
AFTERWARDS_S: Final = 0.2
WAIT_S: Final = LEASE_S + 5.0
"""How long nothing may happen once all is calm, unless all are at rest."""
AT_MOST_S: Final = 60.0
ROUNDS: Final = 40
FIRST_LOOK_S: Final = 0.1
LAST_LOOK_S: Final = 1.6
GROWTH_EVERY: Final = 5
REPLAY_EVERY: Final = 3
LONG_HISTORY: Final = 5
FLAVOURS: Final = {"": 64, "pestered": 11, "stopped": 11, "redone": 14}
"""Most scenarios are about anything. In some signals come while short steps run; in some a node stands still for longer
than its lease, with a turn that another one ends meanwhile; in some executions are reset, forked and retried."""
REDO: Final = ("reset", "reset", "reset", "fork", "retry", "retry")
JUMPS_S: Final = (1.0, LEASE_S * 1.5, 3600.0, -1.0, -LEASE_S * 1.5, -LEASE_S * 1.5)
END: Final = 1 << 62


Deed = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Report:
    """What came of a scenario. `digest` is that of all histories: the same seed gives the same. It is made when it is
    asked for, and so is the text of the trace: nearly all scenarios end well, and nobody looks."""

    seed: int
    violations: tuple[Violation, ...]
    histories: Mapping[str, Sequence[HistoryEvent]]
    faults: tuple[str, ...]
    notes: Sequence[tuple[int, str]]

    @property
    def ok(self) -> bool:
        return not self.violations

    @property
    def executions(self) -> int:
        return len(self.histories)

    @property
    def events(self) -> int:
        return sum(map(len, self.histories.values()))

    @property
    def trace(self) -> tuple[str, ...]:
        return tuple(f"{at / 1e6:.3f} {text}" for at, text in self.notes)

    @property
    def digest(self) -> str:
        found = hashlib.sha256()
        for key, events in sorted(self.histories.items()):
            for event in events:
                found.update(f"{key} {event.seq} {event.at} {event.type} ".encode())
                found.update(encode_body(event.body))
        return found.hexdigest()

    def __str__(self) -> str:
        execution_row = (
            f"seed {self.seed}: {self.executions} executions, {self.events} events, faults: {list(self.faults)}"
        )
        lines = [execution_row, *(str(violation) for violation in self.violations)]
        lines += [f"repeat it with: python -m verification.simulation {self.seed}"]
        return "\n".join(lines)


def simulate(seed: int) -> Report:
    """Run the scenario of this seed."""
    scenario = Scenario(seed)
    try:
        with _short_histories_are_long():
            return copy_context().run(scenario.run)
    finally:
        scenario.forget()


@contextmanager
def _short_histories_are_long() -> Iterator[None]:
    """Histories are short here: what is done for long ones begins early."""
    kept, dispatcher.LONG_HISTORY = dispatcher.LONG_HISTORY, LONG_HISTORY
    try:
        yield
    finally:
        dispatcher.LONG_HISTORY = kept


@lru_cache
def _config(
    *, turn_slots: int, task_slots: int, cached_executions: int, replay_always: bool, batch_size: int
) -> EngineConfig:
    return EngineConfig(
        worker=WorkerConfig(
            lease_s=LEASE_S,
            turn_slots=turn_slots,
            task_slots=task_slots,
            cached_executions=cached_executions,
            shutdown_grace_s=0.5,
            replay_always=replay_always,
        ),
        store=StoreConfig(batch_size=batch_size),
        poll_min_s=LEASE_S / 4,
        poll_max_s=LEASE_S,
        crash_attempts=50,
        gc_threshold=None,
    )


class _Errors(logging.Handler):
    """What the engine itself calls an error is one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        trace = f" {record.exc_info[1]!r}" if record.exc_info and record.exc_info[1] is not None else ""
        self.texts.append(f"{record.getMessage()}{trace}")


class Scenario:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = rng = Random(seed)  # noqa: S311 - it is to be foreseen
        self.loop = SimulatedLoop()  # type: ignore[abstract]  # no sockets, no processes
        self.database = MemoryDatabase()
        self.database.watch = self._look
        self.ledger = Ledger(self.true_time, lambda: getattr(PROCESS.get(), "name", ""))
        self._jumped = 0
        self._set_back = 0
        self._known = 0
        self._seen: list[Violation] = []
        self.config = _config(
            turn_slots=rng.choice((1, 3, 8)),
            task_slots=rng.choice((1, 3, 8)),
            cached_executions=rng.choice((1, 2, 50)),
            replay_always=rng.random() < 0.1,
            batch_size=rng.choice((1, 3, 100)),
        )
        self.flavour = rng.choices(list(FLAVOURS), list(FLAVOURS.values()))[0]
        self.weather = Weather(
            self.loop,
            rng,
            slow=0.6 if self.flavour == "pestered" else rng.choice((0.0, 0.2, 0.6)),
            lost=rng.choice((0.0, 0.0, 0.1)),
            silent=rng.choice((0.6, 0.95)),
            unsure=rng.choice((0.0, 0.0, 0.0, 0.1)),
        )
        # The first of them is now: nodes that wait for it would only look at the clock.
        instants = [rng.random() * TROUBLE_S for _ in range(rng.choice((1, 2, 4)))]
        self._instants = [at_s - min(instants) for at_s in instants]
        self.nodes: list[Node] = []
        self._all_nodes: list[Node] = []
        self._made = 0
        self.faults: list[str] = []
        self._disruptions = 0
        self._handed_back = False
        self._troubles: list[Trouble] = []
        self.clients = Clients(
            rng,
            self._known_nodes,
            self.ledger,
            self.true_time,
            deaf=rng.choice((0.0, 0.2)),
            echo=rng.choice((0.0, 0.2)),
        )

    def true_time(self) -> int:
        """Since the beginning. It never jumps."""
        return int(self.loop.now_s * MICRO)

    def clock(self) -> int:
        """What the nodes and their database take for the time."""
        return START + self._jumped + self.true_time()

    def _entropy(self) -> int:
        return self.rng.getrandbits(64)

    # --- the course of things ---

    def run(self) -> Report:
        LEDGER.set(self.ledger)
        errors = _Errors()
        logger = logging.getLogger("holdfast")
        propagates, logger.propagate = logger.propagate, False
        logger.addHandler(errors)
        try:
            found = self.loop.run(self._run())
        except Livelock as error:
            found = [Violation("I16", "", 0, str(error)), *check(records_of(self.database))]
        finally:
            logger.removeHandler(errors)
            logger.propagate = propagates
        # What a dead node would have looked at nobody looks at.
        unseen = [] if self._disruptions else self.loop.errors
        found += self._seen
        texts = [*errors.texts, *unseen, *self.ledger.errors]
        found += [Violation("LOG", "", 0, text) for text in texts]
        return Report(
            self.seed,
            tuple(found),
            {key: self.database.history(key) for key in self.database.execution_rows},
            tuple(self.faults),
            self.ledger.notes,
        )

    def forget(self) -> None:
        """Let go of everything. A scenario is full of circles, and what is in one waits for the collector, which takes
        longer than all checks together if it has to find every row and every event."""
        for node in self._all_nodes:
            node.forget()
        for part in (self.database, self.clients, self.ledger, self):
            vars(part).clear()

    async def _run(self) -> list[Violation]:
        rng = self.rng
        starting = [self._new_node() for _ in range(rng.choice((2, 2, 3) if self.flavour else (1, 2, 2, 2, 3)))]
        await asyncio.wait(starting, return_when=asyncio.FIRST_COMPLETED)
        callers = self._callers()
        faults = [asyncio.ensure_future(self._fault(kind)) for kind in self._faults()]
        await asyncio.gather(*faults, asyncio.sleep(max(self._instants) + AFTERWARDS_S))
        self.weather.calm()
        self.clients.calm()
        # By the latest time that any node has seen: what happened then may have happened before.
        calm_since = self.clock() + self._set_back
        self.ledger.note("all is calm")
        before = records_of(self.database) if self.seed % GROWTH_EVERY == 0 else []
        for caller in callers:
            await caller
        for echo in self.clients.echoes:
            await echo
        found = await self._settle()
        records = records_of(self.database)
        given = Circumstances(
            disruptions=self._disruptions,
            handed_back=self._handed_back,
            troubles=self._troubles,
            calm_since=calm_since + int(LEASE_S * MICRO),
            replayed=self.flavour == "pestered" or self.seed % REPLAY_EVERY == 0,
        )
        found += check_all(self.database, self.ledger, given, records)
        found += check_growth(before, records)
        return sorted(set(found))

    async def _settle(self) -> list[Violation]:
        """Let everything come to rest, then give what is waited for, until nothing is open any more."""
        give_up_at = self.loop.time() + AT_MOST_S + self._set_back / MICRO
        for _ in range(ROUNDS):
            if not await self._come_to_rest(give_up_at):
                return [Violation("I16", "", 0, f"{self.loop.time():.1f}: does not come to rest")]
            resting = [
                execution_row
                for key in sorted(self.database.execution_rows)
                if (execution_row := self.database.execution_row(key)) and execution_row.is_open
            ]
            if not resting:
                return []
            records = records_of(self.database)
            found = [violation for record in records for violation in check_rows(record)]
            found += check_parent_close(records)
            found += missed_events(self.database, self.clock())
            if found:
                return found
            given = len(self.ledger.calls)
            for execution_row in resting:
                for wait in execution_row.waiting_for:
                    await self.clients.give(execution_row, wait)
            if len(self.ledger.calls) == given:
                return [
                    Violation("I16", execution_row.id, 0, f"waits for {execution_row.waiting_for}")
                    for execution_row in resting
                ]
        return [Violation("I16", "", 0, f"not done after {ROUNDS} rounds")]

    async def _come_to_rest(self, give_up_at: float) -> bool:
        """Whether it does. Somebody must always be getting on: leases that were lost take their time, no more."""
        pause_s, wait_s = FIRST_LOOK_S, WAIT_S + self._set_back / MICRO
        before, changed_at = -1, self.loop.time()
        while not self._at_rest():
            done = len(self.ledger.notes) + sum(
                execution_row.last_seq for execution_row in self.database.execution_rows.values()
            )
            if done != before:
                before, changed_at = done, self.loop.time()
            if self.loop.time() > min(give_up_at, changed_at + wait_s):
                return False
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LAST_LOOK_S)
        return True

    def _look(self) -> None:
        """After every commit: a workflow id has one open execution."""
        execution_rows = self.database.execution_rows
        if len(execution_rows) == self._known:
            return
        self._known = len(execution_rows)
        found: dict[str, str] = {}
        for execution_row in execution_rows.values():
            if (
                execution_row.is_open
                and found.setdefault(execution_row.workflow_id, execution_row.id) != execution_row.id
            ):
                text = f"began while {found[execution_row.workflow_id]} of {execution_row.workflow_id!r} was open"
                self._seen.append(Violation("I17", execution_row.id, 1, text))

    def _at_rest(self) -> bool:
        """Nothing is under way but what only callers can move."""
        database = self.database
        if database.ready or database.tasks or database.timers:
            return False
        if any(row.done_at is None for row in database.deliveries.values()):
            return False
        return not any(
            execution_row.open_children and not execution_row.is_open
            for execution_row in database.execution_rows.values()
        )

    # --- nodes and faults ---

    def _new_node(self) -> asyncio.Task[None]:
        self._made += 1
        node = Node(
            f"n{self._made}",
            self.loop,
            self.database,
            config=self.config,
            registry=REGISTRY,
            clock=self.clock,
            weather=self.weather,
            entropy=self._entropy,
        )
        self.nodes.append(node)
        self._all_nodes.append(node)
        self.ledger.note(f"{node.name} starts")
        return node.start()

    def _known_nodes(self) -> list[Node]:
        """Those that callers know of: one that stands still takes calls, and does not answer."""
        return [node for node in self.nodes if node.up]

    def _faults(self) -> list[str]:
        if self.flavour == "stopped":
            return ["freeze"]
        kinds = ("kill", "kill", "freeze", "freeze", "jump", "jump", "leave")
        return [self.rng.choice(kinds) for _ in range(self.rng.choice((0, 0, 1, 1, 2)))]

    async def _fault(self, kind: str) -> None:
        rng = self.rng
        await asyncio.sleep(rng.choice(self._instants) + rng.choice((0.0, 0.01, 0.3, 1.0)))
        node = rng.choice(await self._targets())
        self.faults.append(f"{kind} {node.name}")
        self.ledger.note(f"{kind} {node.name}")
        began_at = self.true_time()
        self._disruptions += 1
        match kind:
            case "kill":
                self._gone(node)
                node.die()
                self._troubled(node.name, began_at, began_at)
                await asyncio.sleep(rng.choice((0.0, 0.5, 2.0)))
                self._new_node()
            case "freeze":
                node.stop()
                self._troubled(node.name, began_at, END)
                await asyncio.sleep(1.8 * LEASE_S if self.flavour else rng.choice((0.6, 1.4 * LEASE_S)))
                self.ledger.note(f"{node.name} goes on")
                self.loop.go_on(node)
                self._troubled(node.name, began_at, self.true_time())
            case "jump":
                self._jump(rng.choice(JUMPS_S))
            case "leave":
                self._handed_back = True
                self._gone(node)
                self._new_node()
                self._troubled(node.name, began_at, END)
                await asyncio.wait({node.shut_down()}, timeout=LEASE_S)
                node.die()

    def _troubled(self, node: str, began_at: int, ended_at: int) -> None:
        self._troubles.append(Trouble(node, began_at, ended_at, int(LEASE_S * MICRO)))

    def _jump(self, jump_s: float) -> None:
        """Leases and timers are over at once, or take longer."""
        self.ledger.note(f"the clock jumps by {jump_s} s")
        self._jumped += int(jump_s * MICRO)
        self._set_back += int(max(-jump_s, 0.0) * MICRO)
        now = self.true_time()
        self._troubled("", now, now + int(abs(jump_s) * MICRO) if jump_s < 0 else now)

    async def _targets(self) -> list[Node]:
        """Those that are at work, if any are soon: the others have nothing to lose. Half of the time those that run a
        turn: who stands still with one must not end it."""
        rng, database = self.rng, self.database
        turns_only = rng.random() < 0.5
        wait = 100 if self.flavour else 40 if rng.random() < 0.8 else 0
        while True:
            nodes = [node for node in self._known_nodes() if not node.halted]
            holders = {row.worker for row in database.ready.values()}
            if not turns_only or wait < 5:
                holders |= {row.worker for row in database.tasks.values()}
            names = {holder.partition(".")[0] for holder in holders if holder is not None}
            if self.flavour == "stopped":
                names = {run.node for runs in self.ledger.steps.values() for run in runs if run.ended_at is None}
            at_work = [node for node in nodes if node.name in names]
            if at_work:
                return at_work
            wait -= 1
            if wait < 0 and nodes:
                return nodes
            await asyncio.sleep(0.025)

    def _gone(self, node: Node) -> None:
        node.up = False
        if node in self.nodes:
            self.nodes.remove(node)

    # --- callers ---

    def _callers(self) -> list[asyncio.Task[None]]:
        rng = self.rng
        ids = [f"w{number}" for number in range(rng.choice((1, 2, 2, 3)))]
        maker = Maker(rng, ids, limited=True)
        made: list[Deed] = []
        for workflow_id in ids:
            spec = {"ops": maker.ops(self.flavour), "log": []}
            made += self._calls_for(workflow_id, spec)
            if self.flavour == "pestered":
                made += [self._pester(workflow_id) for _ in range(rng.randint(3, 7))]
        return [asyncio.ensure_future(self._later(call)) for call in made]

    def _pester(self, workflow_id: str) -> Deed:
        name, later_s = self.rng.choice(SIGNALS), self.rng.random() * 1.2

        async def call() -> None:
            await asyncio.sleep(later_s)
            await self.clients.signal(workflow_id, name)

        return call

    async def _later(self, call: Deed) -> None:
        """Calls come in bursts: what comes at the same time gets in each other's way."""
        await asyncio.sleep(self.rng.choice(self._instants) + self.rng.choice((0.0, 0.0, 0.001, 0.02, 0.2)))
        await call()

    def _calls_for(self, workflow_id: str, spec: dict[str, Any]) -> list[Deed]:
        """A start, what the program will wait for (some of it), and now and then the end."""
        rng, clients = self.rng, self.clients
        calls: list[Deed] = []
        kind = ASKED if rng.random() < 0.25 else KIND
        limit_s = rng.choice((0.3, 1.0, 3.0)) if rng.random() < 0.15 and self.flavour != "stopped" else None
        if rng.random() < 0.5:
            name = rng.choice(SIGNALS)
            begin: Deed = lambda: clients.signal_with_start(kind, workflow_id, spec, limit_s, name)  # noqa: E731
        else:
            begin = lambda: clients.start(kind, workflow_id, spec, limit_s)  # noqa: E731
        calls += [begin] * rng.randint(1, 2)
        if kind == ASKED:
            calls += [lambda: clients.update(workflow_id)] * rng.randint(1, 2)
        for op in _flat(spec["ops"]) if self.flavour != "stopped" else ():
            if rng.random() < 0.6:
                calls += self._calls_to(workflow_id, op)
        if rng.random() < 0.2 and self.flavour != "stopped":
            what = rng.choice(("cancel", "cancel", "terminate"))
            calls.append(lambda: clients.end(what, workflow_id))
        if self.flavour == "redone":
            calls += [self._redo(workflow_id) for _ in range(rng.randint(1, 3))]
        elif not self.flavour and rng.random() < 0.05:
            calls.append(self._redo(workflow_id))
        return calls

    def _redo(self, workflow_id: str) -> Deed:
        what, later_s = self.rng.choice(REDO), self.rng.choice((0.0, 0.05, 0.3, 1.0, 2.0))

        async def call() -> None:
            await asyncio.sleep(later_s)
            await self.clients.redo(what, workflow_id)

        return call

    def _calls_to(self, workflow_id: str, op: Op) -> list[Deed]:
        rng, clients = self.rng, self.clients
        match op[0]:
            case "receive" | "peek" | "drain":
                return [lambda: clients.signal(workflow_id, op[1])] * rng.choice((1, 1, 2))
            case "promise":
                reject, early = rng.random() < 0.3, rng.random() < 0.3
                return [
                    lambda: clients.settle(workflow_id, op[1], reject=reject, early=early),
                    lambda: clients.settle(workflow_id, op[1]),
                ][: rng.choice((1, 2))]
            case "event":
                return [lambda: clients.publish(op[1])]
            case "message":
                return [lambda: clients.publish(op[1], op[2])]
            case "broadcast":
                return [lambda: clients.broadcast(op[1])]
            case _:
                return []


def _flat(ops: list[Op]) -> list[Op]:
    found: list[Op] = []
    for op in ops:
        found.append(op)
        if op[0] in {"all", "race", "guard"}:
            found += _flat(op[1])
    return found
