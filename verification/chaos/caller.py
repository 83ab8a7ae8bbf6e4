"""The callers of the chaos run: each call is written down before it is made, and its answer when it is there.

A call whose fate is unknown is made again under the same request id, also by the process that takes the place of one
that was killed. Only of those that are made `once`, the fate of some stays unknown.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from holdfast import Client, Engine
from holdfast.errors import HoldfastError, RequestMismatch, StorageError, Unavailable
from holdfast.model.events import HistoryEvent
from verification.chaos.app import Book, begin, config, read_book, say_up
from verification.invariants.records import as_stored
from verification.simulation.programs import KEYS, NAMES, SIGNALS, Maker

BAGS = tuple(f"bag-{number}" for number in range(6))
ACTORS = 8
PAUSE_S = 0.25
PATIENCE_S = 6.0
ONCE = 0.2
ONCE_S = 0.4
LEAVE_S = 15.0
ACCOUNTS = ("anne", "bert", "cleo")

Call = dict[str, Any]


def digest(events: Iterable[HistoryEvent]) -> str:
    found = hashlib.sha256()
    for event in events:
        found.update(repr(as_stored(event)).encode())
    return found.hexdigest()


def brief(workflow_id: str) -> bool:
    return int(workflow_id.rpartition("-")[2]) % 2 == 0


async def make(client: Client, call: Call) -> Any:
    """One call, as it was written down; the answer as it is written down."""
    key = call["id"]
    match call["what"]:
        case "signal_with_start":
            workflow_id = call["workflow_id"]
            answer: Any = await client.signal_with_start_workflow(
                workflow_id,
                "bag",
                {"brief": brief(workflow_id), "taken": []},
                signal_name="item",
                signal_value=call["value"],
                idempotency_key=key,
            )
        case "signal":
            answer = await client.signal_workflow(call["execution_id"], call["name"], call["value"], request_id=key)
        case "start":
            handle = await client.start_workflow(
                call["kind"],
                call["input"],
                workflow_id=call["workflow_id"],
                execution_timeout=call.get("limit"),
                idempotency_key=key,
            )
            answer = {"workflow_execution_id": handle.id, "workflow_created": handle.created}
        case "settle":
            answer = await client.resolve_promise_by_name(
                call["workflow_id"], call["name"], call["value"], idempotency_key=key, allow_early=call["early"]
            )
        case "reject":
            answer = await client.reject_promise_by_name(
                call["workflow_id"], call["name"], call["value"], idempotency_key=key, allow_early=call["early"]
            )
        case "settle one":
            answer = await client.resolve_promise(call["promise_id"], call["value"], idempotency_key=key)
        case "publish":
            answer = await client.publish_event(call["name"], call["value"], idempotency_key=key)
        case "message":
            answer = await client.send_message(call["name"], call["key"], call["value"], idempotency_key=key)
        case "broadcast":
            thrown = await client.broadcast(call["name"], idempotency_key=key)
            answer = {"broadcast_id": thrown.broadcast_id, "delivered": thrown.delivered}
        case "cancel":
            answer = {"changed": await client.cancel_workflow(call["execution_id"], key)}
        case "terminate":
            answer = {"changed": await client.terminate_workflow(call["execution_id"], key)}
        case _:
            events = await client.history(call["execution_id"])
            answer = {"events": len(events), "digest": digest(events)}
    plain: dict[str, Any] = msgspec.to_builtins(answer)
    plain.pop("idempotency_key_new", None)
    return plain


class Caller:
    """One process: several calls at a time."""

    def __init__(self, client: Client, book: Book, seed: str, name: str, stop: asyncio.Event) -> None:
        self._client = client
        self._book = book
        self._rng = rng = Random(seed)
        self._name = name
        self._stop = stop
        self._number = 0
        self._plans = [f"plan-{name}-{number}" for number in range(3)]
        self._maker = Maker(rng, self._plans)
        self._known: deque[tuple[str, str]] = deque(maxlen=30)  # execution id, kind
        self._promises: deque[tuple[str, str]] = deque(maxlen=10)

    async def act(self) -> None:
        """One of those who call."""
        while not self._stop.is_set():
            await asyncio.sleep(self._rng.expovariate(1 / PAUSE_S))
            call = self._next()
            await self.do(call | {"once": True} if self._rng.random() < ONCE else call)

    async def do(self, call: Call, *, known: bool = False) -> Any:
        """Until its fate is known, or nobody has the patience any more. The answer, if there is one."""
        if not known:
            self._book.write("call", call)
        leave_at: float | None = None
        loop = asyncio.get_running_loop()
        once = "once" in call
        while leave_at is None or loop.time() < leave_at:
            try:
                answer = await asyncio.wait_for(make(self._client, call), ONCE_S if once else PATIENCE_S)
            except (TimeoutError, Unavailable, StorageError) as error:
                self._book.write("unknown", call["id"], type(error).__name__)
                if once:
                    return None
                await asyncio.sleep(self._rng.uniform(0.05, 0.3))
            except HoldfastError as error:
                self._book.write("refused", call["id"], error.code)
                return None
            else:
                self._book.write("ok", call["id"], answer)
                await self._doubt(call)
                self._remember(call, answer)
                return answer
            if self._stop.is_set() and leave_at is None:
                leave_at = loop.time() + LEAVE_S
        return None

    async def give(self, what: str, **fields: Any) -> None:
        """One call, from outside."""
        await self.do(self._call(what, **fields))

    async def _doubt(self, call: Call) -> None:
        """Now and then a call is made again although it was answered, or its key is used for something else."""
        chance = self._rng.random()
        if call["what"] in {"read", "cancel", "terminate"} or chance > 0.12:
            return
        other = chance < 0.02 and call["what"] not in {"broadcast", "start"}
        try:
            asked = call | {"value": "something else"} if other else call
            answer = await asyncio.wait_for(make(self._client, asked), PATIENCE_S)
        except RequestMismatch:
            if not other:
                self._book.write("mismatch", call["id"], "the same call was refused")
        except (TimeoutError, HoldfastError) as error:
            if not isinstance(error, TimeoutError | Unavailable | StorageError):
                self._book.write("mismatch", call["id"], f"an answered call was refused: {error!r}")
        else:
            if other:
                self._book.write("mismatch", call["id"], "another call with its key was taken")
            else:
                self._book.write("ok", call["id"], answer)

    def _remember(self, call: Call, answer: Any) -> None:
        if "workflow_execution_id" in answer:
            self._known.append((answer["workflow_execution_id"], call.get("kind", "bag")))

    # --- what is called ---

    def _call(self, what: str, **fields: Any) -> Call:
        self._number += 1
        return {"id": f"{self._name}-{self._number}", "what": what, **fields}

    def _next(self) -> Call:
        rng = self._rng
        number = f"{self._name}-{self._number + 1}"
        what = rng.choices(
            ("bag", "plan", "transfer", "errand", "signal", "settle", "publish", "message", "broadcast", "end", "read"),
            (26, 11, 8, 14, 12, 9, 6, 3, 4, 5, 10),
        )[0]
        match what:
            case "bag":
                value = f"end {number}" if rng.random() < 0.08 else number
                return self._call("signal_with_start", workflow_id=rng.choice(BAGS), name="item", value=value)
            case "plan":
                return self._plan()
            case "transfer":
                source, target = rng.sample(ACCOUNTS, 2)
                order = {"from": source, "to": target, "amount": rng.randint(1, 100)}
                order |= {"refused": rng.random() < 0.3, "sleep": rng.choice((0, 0, 0.3))}
                return self._call("start", kind="transfer", workflow_id=f"transfer-{number}", input=order)
            case "errand":
                return self._errand(f"errand-{number}")
            case "settle" if self._promises:
                workflow_id, name = rng.choice(self._promises)
                how, early = rng.choice(("settle", "reject")), rng.random() < 0.5
                return self._call(how, workflow_id=workflow_id, name=name, value=number, early=early)
            case "publish":
                return self._call("publish", name=rng.choice(KEYS), value=number)
            case "message":
                return self._call("message", name="m", key=rng.choice(KEYS), value=number)
            case "broadcast":
                return self._call("broadcast", name=rng.choice(NAMES))
        if not self._known:
            return self._plan()
        return self._to_known(what, number)

    def _to_known(self, what: str, number: str) -> Call:
        rng = self._rng
        execution_id, kind = rng.choice(self._known)
        if what == "end":
            return self._call(rng.choice(("cancel", "cancel", "terminate")), execution_id=execution_id)
        if what == "signal":
            name = "item" if kind == "bag" else rng.choice(SIGNALS)
            return self._call("signal", execution_id=execution_id, name=name, value=number)
        return self._call("read", execution_id=execution_id)

    def _errand(self, workflow_id: str) -> Call:
        rng = self._rng
        limit: float | None = None
        match rng.choice(("chores", "chores", "parent", "promise", "promise", "never")):
            case "chores":
                order: Call = {"what": "chores", "delay": rng.choice((0.0, 0.1, 0.4)), "fails": rng.choice((0, 1, 2))}
            case "parent":
                child, own = rng.choice(("end", "fail", "never")), rng.choice((0.4, 0.8))
                order = {"what": "parent", "child": child, "limit": own}
            case "promise":
                order = {"what": "promise", "limit": rng.choice((0.5, 3.0))}
                self._promises.append((workflow_id, "p"))
            case _:
                order, limit = {"what": "never"}, rng.choice((0.2, 0.7))
        return self._call("start", kind="errand", workflow_id=workflow_id, input=order, limit=limit)

    def _plan(self) -> Call:
        """Several calls start the same one: the open one is found, or another begins."""
        workflow_id = self._rng.choice(self._plans)
        if self._rng.random() < 0.3:
            self._plans[self._plans.index(workflow_id)] = f"plan-{self._name}-{self._number}"
        ops = self._maker.ops()
        for op in ops:
            if op[0] == "promise":
                self._promises.append((workflow_id, op[1]))
        return self._call("start", kind="plan", workflow_id=workflow_id, input={"ops": ops, "log": []})


def unanswered(path: Path) -> list[Call]:
    """What the process before had asked and not heard."""
    calls: dict[str, Call] = {}
    for _, what, *words in read_book(path):
        if what == "call":
            calls[words[0]["id"]] = words[0]
        elif what in {"ok", "refused"}:
            calls.pop(words[0], None)
    return [call for call in calls.values() if "once" not in call]


async def call_all(options: dict[str, Any], stop: asyncio.Event) -> None:
    """Calls until it is told to stop; first what was left over by the process before it."""
    path = Path(options["folder"]) / f"{options['name']}.calls"
    left = unanswered(path) if path.exists() else []
    book = Book(path)
    engine = Engine(options["url"], config=config())
    await begin(engine)
    say_up(options)
    try:
        name = f"{options['name']}.{options['life']}"
        caller = Caller(engine.client, book, f"{options['seed']} {name}", name, stop)
        logging.getLogger("chaos").info("%d calls are left over for process %d", len(left), os.getpid())
        await asyncio.gather(*(caller.do(call, known=True) for call in left), *(caller.act() for _ in range(ACTORS)))
    finally:
        await engine.shutdown()
