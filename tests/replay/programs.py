"""Random programs over the whole of `ctx`, as data; and the workflows that run them.

A program is a list of moves, each a list: its name and what it takes, among it other moves. Whatever can be observed on
the way (results, errors, queue lengths, times, chance) goes into the result, so that a replay which sees anything else
makes another last command. `source` shows a program as the code it stands for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from random import Random
from typing import Any

from holdfast import RetryPolicy, WorkflowContext, signal, task, update, workflow
from holdfast.errors import HoldfastError

Move = list[Any]
Moves = list[Move]
Change = Callable[[Move], Moves]

NAMES = ("a", "b")
HANDLED = ("h", "g")
KEYS = ("x", "y")
SOON = RetryPolicy(initial_interval_s=0.0, max_attempts=2)
MAX_SEEN = 400


# --- what programs call -------------------------------------------------------------------------------------------


async def act(number: int) -> int:
    """A step. A negative number fails; the made-up engine never calls it."""
    if number < 0:
        raise ValueError(f"{number}")
    return number


@task(kind="act", retry=SOON)
async def act_as_task(number: int) -> int:
    return await act(number)


@workflow(kind="kid")
async def kid(ctx: WorkflowContext, number: int) -> int:
    """A child. A negative number fails; others wait a moment, begin afresh, have a child, or wait for a call."""
    match number:
        case 1 | 5 | 9:
            await ctx.sleep(number / 1000)
        case 3 | 7:
            await ctx.sleep(0.001)
            ctx.continue_as_new(number - 3)
        case 6:
            return await ctx.child(kid, 1, on_parent_close="terminate")
        case 8:
            won = await ctx.race(ctx.wait_for_signal("a", int), ctx.sleep(0.005))
            return 0 if won.index else int(won.result)
    return await act(number)


# --- making programs ----------------------------------------------------------------------------------------------


class Author:
    """Writes programs. The same random numbers write the same program."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def program(self) -> dict[str, Any]:
        """`moves` are made by `run`, `handler` by whoever handles a signal, `update` by an update."""
        handles = self.rng.random() < 0.5
        return {
            "class": handles,
            "moves": self.moves(self.rng.choice((1, 2, 3)), at_most=5),
            "handler": self.moves(1, at_most=2) if handles else [],
            "update": self.moves(1, at_most=2) if handles else [],
            "join": self.rng.random() < 0.8,
        }

    def moves(self, depth: int, at_most: int = 3) -> Moves:
        return [self.move(depth) for _ in range(self.rng.randint(1, at_most))]

    def move(self, depth: int) -> Move:
        made = self.nested(depth) if depth > 0 and self.rng.random() < 0.55 else self.leaf()
        return ["may", made] if self.rng.random() < 0.6 else made

    def leaf(self) -> Move:
        rng = self.rng
        if rng.random() < 0.6:
            return self.future()
        name, key, number = rng.choice(NAMES), rng.choice(KEYS), rng.randint(0, 9)
        leaves: list[Move] = [
            ["drain", name],
            ["count", name],
            ["chance"],
            ["who"],
            ["state", key, number if rng.random() < 0.8 else None],
            ["metadata", key, str(number) if rng.random() < 0.8 else None],
            ["patched", rng.choice(("p", "q", "r"))],
            ["deprecate", rng.choice(("old", "older"))],
            ["take_back", self.future(), rng.random() < 0.5],
            ["leave", ["child", number]],
            [
                "leave",
                ["named_child", number, rng.choice(("one", "two")), "fail", rng.choice(("default", "terminate"))],
            ],
            ["leave", ["tell", self.target(), name, number]],
            ["leave", ["sleep", rng.randint(0, 9)]],
            ["put", number],
            ["get", rng.randint(0, 6)],
            ["set"],
            ["hold", rng.randint(0, 6)],
            ["yield"],
            ["asyncio_sleep", rng.randint(0, 5)],
            ["asked_to_cancel"],
            ["raise", number],
        ]
        chance = rng.random()
        if chance < 0.04:
            return ["continue", number]
        if chance < 0.05:
            return rng.choice((["leave", ["task", number]], ["leave", ["run", number]], ["hold", None], ["get", None]))
        return rng.choice(leaves)

    def future(self) -> Move:
        """Something durable that can be awaited, or put into a composition."""
        rng = self.rng
        number = rng.randint(-3, 9)
        return rng.choice(
            (
                ["run", number],
                ["run", number],
                ["task", number],
                ["task", number],
                ["sleep", rng.randint(0, 8)],
                ["sleep_until", rng.randint(-3, 8)],
                ["signal", rng.choice(NAMES), rng.randint(0, 8)],
                ["signal", rng.choice(NAMES), None if rng.random() < 0.3 else 3],
                ["child", number],
                ["child_outcome", number],
                [
                    "named_child",
                    number,
                    rng.choice(("one", "two")),
                    rng.choice(("fail", "use_existing")),
                    rng.choice(("default", "cancel", "terminate", "abandon")),
                ],
                ["tell", self.target(), rng.choice(NAMES), number],
                ["until", rng.randint(0, 6), rng.randint(0, 8)],
            )
        )

    def target(self) -> str:
        return self.rng.choice(("me", "my_name", "nobody", "kid", "one", "two"))

    def item(self, depth: int) -> Move:
        """One of several things awaited at once: what ctx gave, a coroutine, another composition."""
        chance = self.rng.random()
        if chance < 0.5 or depth <= 0:
            return ["future", self.future()]
        return ["coro", self.moves(depth - 1)] if chance < 0.8 else ["together", self.together(depth - 1)]

    def together(self, depth: int) -> Move:
        items = [self.item(depth) for _ in range(self.rng.randint(1, 3))]
        kind = self.rng.choice(("all", "any", "race", "n_of", "settled"))
        return [kind, self.rng.randint(1, len(items)), items]

    def nested(self, depth: int) -> Move:
        rng = self.rng
        inner = depth - 1
        branches = [self.moves(inner, at_most=2) for _ in range(rng.randint(1, 3))]
        makers: list[Any] = [
            lambda: ["together", self.together(inner)],
            lambda: ["together", self.together(inner)],
            lambda: ["has", rng.choice(NAMES), self.moves(inner), self.moves(inner)],
            lambda: ["gather", rng.random() < 0.5, branches],
            lambda: ["first", rng.choice(("FIRST_COMPLETED", "FIRST_EXCEPTION", "ALL_COMPLETED")), branches],
            lambda: ["as_completed", branches],
            lambda: ["group", branches],
            lambda: ["within", rng.randint(0, 6), self.moves(inner)],
            lambda: ["timeout", rng.randint(0, 6), self.moves(inner)],
            lambda: ["except", self.moves(inner), self.moves(inner)],
            lambda: ["finally", self.moves(inner), self.moves(inner)],
            lambda: ["clean_up", self.moves(inner), self.moves(inner)],
            lambda: ["swallow", self.moves(inner)],
            lambda: ["shield", self.moves(inner)],
            lambda: ["spawn", self.moves(inner)],
            lambda: ["lock", self.moves(inner)],
            lambda: ["saga", [self.rng.randint(-1, 9) for _ in range(self.rng.randint(1, 2))], self.moves(inner)],
            lambda: ["if_patched", rng.choice(("p", "q", "r")), self.moves(inner), self.moves(inner)],
            lambda: ["times", rng.randint(2, 3), self.moves(inner, at_most=2)],
        ]
        made: Move = rng.choice(makers)()
        return made


# --- running them -------------------------------------------------------------------------------------------------


class Interpreter:
    """Makes the moves of a program, and notes all that can be observed on the way."""

    def __init__(self, ctx: WorkflowContext) -> None:
        self.ctx = ctx
        self.seen: list[Any] = []
        self.handled: list[Any] = []
        self.jobs: list[asyncio.Task[Any]] = []
        self.queue: asyncio.Queue[int] | None = None
        self.flag: asyncio.Event | None = None
        self.mutex: asyncio.Lock | None = None

    async def run(self, program: dict[str, Any]) -> list[Any]:
        self.queue, self.flag, self.mutex = asyncio.Queue(), asyncio.Event(), asyncio.Lock()
        await self.make(program["moves"])
        if program["join"]:
            self.note("joined", [_plain(found) for found in await asyncio.gather(*self.jobs, return_exceptions=True)])
        return self.seen

    async def make(self, moves: Moves) -> Any:
        last: Any = None
        for move in moves:
            last = await self.one(move)
            self.note(move[0], last)
        return last

    def note(self, what: str, result: Any) -> None:
        ctx = self.ctx
        if len(self.seen) < MAX_SEEN:
            counts = [ctx.pending_signal_count(name) for name in NAMES]
            self.seen.append([what, _plain(result), counts, ctx.now().timestamp(), len(self.handled)])

    async def one(self, move: Move) -> Any:
        if move[0] == "may":
            try:
                return await self.one(move[1])
            except Exception as error:
                return _plain(error)
        if move[0] in FUTURES:
            return await self.future(move)
        return await getattr(self, f"do_{move[0]}")(*move[1:])

    def future(self, move: Move) -> Any:
        """What ctx gives for it: it has begun when this returns."""
        return getattr(self, f"begin_{move[0]}")(*move[1:])

    # --- what ctx gives ---

    def begin_run(self, number: int) -> Any:
        return self.ctx.run(act, number, name=f"act {number}", retry=SOON)

    def begin_task(self, number: int) -> Any:
        return self.ctx.task(act_as_task, number)

    def begin_sleep(self, ms: int) -> Any:
        return self.ctx.sleep(ms / 1000)

    def begin_sleep_until(self, ms: int) -> Any:
        return self.ctx.sleep_until(self.ctx.now() + timedelta(milliseconds=ms))

    def begin_signal(self, name: str, ms: int | None) -> Any:
        return self.ctx.wait_for_signal(name, timeout=None if ms is None else ms / 1000)

    def begin_child(self, number: int) -> Any:
        return self.ctx.child(kid, number)

    def begin_child_outcome(self, number: int) -> Any:
        return self.ctx.child(kid, number, propagate_failure=False, on_parent_close="cancel")

    def begin_named_child(self, number: int, name: str, if_running: str, on_parent_close: str) -> Any:
        return self.ctx.child(
            kid, number, workflow_id=name, if_running=if_running, on_parent_close=on_parent_close, metadata={"n": name}
        )

    def begin_tell(self, target: str, name: str, number: int) -> Any:
        if target == "kid":
            return self.ctx.child(kid, 1).signal(name, number)
        info = self.ctx.info
        who = {"me": info.workflow_execution_id, "my_name": info.workflow_id}.get(target, target)
        return self.ctx.signal_external_workflow(who, name, number)

    def begin_until(self, count: int, ms: int) -> Any:
        return self.ctx.wait_until(lambda: len(self.seen) + len(self.handled) >= count, timeout=ms / 1000)

    # --- at once ---

    async def do_drain(self, name: str) -> Any:
        return await self.ctx.drain_signals(name)

    async def do_count(self, name: str) -> Any:
        return [self.ctx.has_signal(name), self.ctx.pending_signal_count(name)]

    async def do_chance(self) -> Any:
        return [self.ctx.random.randint(0, 999), str(self.ctx.uuid4())]

    async def do_who(self) -> Any:
        info = self.ctx.info
        return [info.workflow_execution_id, info.workflow_id, info.kind, info.parent_execution_id]

    async def do_state(self, key: str, value: Any) -> Any:
        if value is None:
            self.ctx.state.pop(key, None)
        else:
            self.ctx.state[key] = value
        return dict(self.ctx.state)

    async def do_metadata(self, key: str, value: Any) -> Any:
        self.ctx.set_metadata({key: value})
        return dict(self.ctx.metadata)

    async def do_patched(self, patch_id: str) -> Any:
        return self.ctx.patched(patch_id)

    async def do_yes(self) -> bool:
        """What `patched` was before."""
        return False

    async def do_deprecate(self, patch_id: str) -> None:
        self.ctx.deprecate_patch(patch_id)

    async def do_asked_to_cancel(self) -> Any:
        return [self.ctx.cancel_requested, self.ctx.cancel_reason]

    async def do_raise(self, number: int) -> None:
        raise KeyError(number)

    async def do_continue(self, number: int) -> None:
        self.ctx.continue_as_new(number)

    async def do_take_back(self, move: Move, later: bool) -> Any:
        """Begin something and cancel it, at once or a moment later."""
        begun = self.future(move)
        if later:
            await asyncio.sleep(0)
        return begun.cancel()

    async def do_leave(self, move: Move) -> None:
        """Begin something that runs on by itself."""
        self.future(move)

    # --- asyncio ---

    async def do_yield(self) -> None:
        await asyncio.sleep(0)

    async def do_asyncio_sleep(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)

    async def do_put(self, number: int) -> None:
        assert self.queue is not None
        self.queue.put_nowait(number)

    async def do_get(self, ms: int | None) -> Any:
        assert self.queue is not None
        return await asyncio.wait_for(self.queue.get(), None if ms is None else ms / 1000)

    async def do_set(self) -> None:
        assert self.flag is not None
        self.flag.set()

    async def do_hold(self, ms: int | None) -> Any:
        assert self.flag is not None
        return await asyncio.wait_for(self.flag.wait(), None if ms is None else ms / 1000)

    async def do_lock(self, moves: Moves) -> Any:
        assert self.mutex is not None
        if self.mutex.locked():
            return "locked"
        async with self.mutex:
            return await self.make(moves)

    async def do_gather(self, all_of_it: bool, branches: list[Moves]) -> Any:
        return await asyncio.gather(*map(self.make, branches), return_exceptions=all_of_it)

    async def do_first(self, when: str, branches: list[Moves]) -> Any:
        jobs = [asyncio.create_task(self.make(branch)) for branch in branches]
        try:
            done, _ = await asyncio.wait(jobs, return_when=when)
        finally:
            for job in jobs:
                job.cancel()
            ends = await asyncio.gather(*jobs, return_exceptions=True)
        return [[job in done for job in jobs], [_plain(end) for end in ends]]

    async def do_as_completed(self, branches: list[Moves]) -> Any:
        jobs = [asyncio.create_task(self.make(branch)) for branch in branches]
        return [_plain(await found) for found in asyncio.as_completed(jobs)]

    async def do_group(self, branches: list[Moves]) -> Any:
        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(self.make(branch)) for branch in branches]
        return [job.result() for job in jobs]

    async def do_within(self, ms: int, moves: Moves) -> Any:
        return await asyncio.wait_for(self.make(moves), ms / 1000)

    async def do_timeout(self, ms: int, moves: Moves) -> Any:
        async with asyncio.timeout(ms / 1000):
            return await self.make(moves)

    async def do_shield(self, moves: Moves) -> Any:
        return await asyncio.shield(asyncio.create_task(self.make(moves)))

    async def do_spawn(self, moves: Moves) -> None:
        self.jobs.append(asyncio.create_task(self.make(moves)))

    # --- control flow ---

    async def do_has(self, name: str, then: Moves, otherwise: Moves) -> Any:
        return await self.make(then if self.ctx.has_signal(name) else otherwise)

    async def do_if_patched(self, patch_id: str, then: Moves, otherwise: Moves) -> Any:
        return await self.make(then if self.ctx.patched(patch_id) else otherwise)

    async def do_new_way(self, patch_id: str, moves: Moves) -> Any:
        """What `if_patched` becomes when nobody goes the old way any more."""
        self.ctx.deprecate_patch(patch_id)
        return await self.make(moves)

    async def do_times(self, count: int, moves: Moves) -> Any:
        return [await self.make(moves) for _ in range(count)]

    async def do_except(self, moves: Moves, handler: Moves) -> Any:
        try:
            return await self.make(moves)
        except Exception as error:
            return [_plain(error), await self.make(handler)]

    async def do_finally(self, moves: Moves, last: Moves) -> Any:
        try:
            return await self.make(moves)
        finally:
            await self.make(last)

    async def do_clean_up(self, moves: Moves, undo: Moves) -> Any:
        try:
            return await self.make(moves)
        except asyncio.CancelledError:
            await self.make(undo)
            raise

    async def do_swallow(self, moves: Moves) -> Any:
        try:
            return await self.make(moves)
        except asyncio.CancelledError:
            return "swallowed"

    async def do_saga(self, numbers: list[int], moves: Moves) -> Any:
        async with self.ctx.saga() as saga:
            for number in numbers:
                await saga.do(self.ctx.task(act_as_task, number), undo=lambda done: self.ctx.run(act, done))
            return await self.make(moves)

    # --- compositions ---

    async def do_together(self, composition: Move) -> Any:
        return await self.together(composition)

    def together(self, composition: Move) -> Any:
        kind, count, items = composition
        begun = [self.item(item) for item in items]
        if kind == "n_of":
            return self.ctx.n_of(count, begun)
        return getattr(self.ctx, kind)(begun)

    def item(self, item: Move) -> Awaitable[Any]:
        match item[0]:
            case "future":
                found: Awaitable[Any] = self.future(item[1])
            case "coro":
                found = asyncio.ensure_future(self.make(item[1]))
            case _:
                found = self.together(item[1])
        return found


FUTURES = frozenset(name.removeprefix("begin_") for name in dir(Interpreter) if name.startswith("begin_"))


def _plain(value: Any) -> Any:
    """As it can be put into a result. Texts of errors may name lines, which are no part of what a program does."""
    if isinstance(value, BaseExceptionGroup):
        return [type(value).__name__, [_plain(error) for error in value.exceptions]]
    if isinstance(value, BaseException):
        text = value.code if isinstance(value, HoldfastError) else str(value)[:40]
        return [type(value).__name__, text, type(value.__context__).__name__]
    if hasattr(value, "item_id"):
        return [value.index, value.item_id, value.status, _plain(value.result), _plain(value.error)]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


@workflow(kind="plain")
async def plain(ctx: WorkflowContext, program: dict[str, Any] | int) -> Any:
    if isinstance(program, int):
        return program  # begun afresh: nothing more to do
    return await Interpreter(ctx).run(program)


@workflow(kind="handling")
class Handling:
    """The same with handlers: what they do goes on beside `run`."""

    def __init__(self, ctx: WorkflowContext) -> None:
        self.interpreter = Interpreter(ctx)
        self.program: dict[str, Any] = {}

    async def run(self, ctx: WorkflowContext, program: dict[str, Any] | int) -> Any:
        if isinstance(program, int):
            return program
        self.program = program
        seen = await self.interpreter.run(program)
        if program["join"]:
            await ctx.wait_until(ctx.all_handlers_finished)
        return [seen, self.interpreter.handled]

    @signal
    async def h(self, value: Any) -> None:
        """Before `run` has begun there are no moves yet."""
        self.interpreter.handled.append(["h", value])
        try:
            await self.interpreter.make(self.program.get("handler", []))
        except Exception as error:
            self.interpreter.handled.append(_plain(error))

    @signal
    def g(self, value: int) -> None:
        self.interpreter.handled.append(["g", value])

    @update
    async def ask(self, value: int) -> Any:
        self.interpreter.handled.append(["ask", value])
        return _plain(await self.interpreter.make(self.program.get("update", [])))

    @ask.validator
    def check(self, value: int) -> None:
        if value < 0:
            raise ValueError(value)


def definition_of(program: dict[str, Any]) -> Any:
    return Handling if program["class"] else plain


# --- changing them ------------------------------------------------------------------------------------------------

_OF_BRANCHES = frozenset({"gather", "first", "as_completed", "group"})


def rewritten(moves: Moves, change: Change) -> Moves:
    """Every move replaced by those that `change` gives for it, the inner ones first."""
    return [new for move in moves for new in change(_rewritten_inside(move, change))]


def _rewritten_inside(move: Move, change: Change) -> Move:
    name = move[0]
    if name == "may":
        inner = rewritten([move[1]], change)
        return ["may", inner[0] if len(inner) == 1 else ["times", 1, inner]]
    if name == "together":
        return ["together", _rewritten_together(move[1], change)]
    if name in _OF_BRANCHES:
        return [*move[:-1], [rewritten(branch, change) for branch in move[-1]]]
    return [rewritten(part, change) if _is_moves(part) else part for part in move]


def _rewritten_together(composition: Move, change: Change) -> Move:
    kind, count, items = composition
    done: list[Move] = []
    for item in items:
        if item[0] == "coro":
            done.append(["coro", rewritten(item[1], change)])
        else:
            done.append(["together", _rewritten_together(item[1], change)] if item[0] == "together" else item)
    return [kind, count, done]


def _is_moves(part: Any) -> bool:
    return isinstance(part, list) and bool(part) and isinstance(part[0], list)


def smaller(part: list[Any]) -> Iterator[list[Any]]:
    """With one thing less: a list without one of its members, or what a move contains in its place."""
    is_list = not part or not isinstance(part[0], str)
    for index, inner in enumerate(part):
        if not isinstance(inner, list):
            continue
        before, after = part[:index], part[index + 1 :]
        if is_list:
            yield [*before, *after]
            for held in inner[1:] if inner and isinstance(inner[0], str) else ():
                if _is_moves(held) and isinstance(held[0][0], str):
                    yield [*before, *held, *after]
        if inner[:1] == ["may"]:
            yield [*before, inner[1], *after]
        yield from ([*before, less, *after] for less in smaller(inner))


# --- showing them -------------------------------------------------------------------------------------------------


def source(program: dict[str, Any]) -> str:
    """A program as the code it stands for."""
    lines = [f"{'class' if program['class'] else 'def'} workflow, run:"]
    for part in ("moves", "handler", "update"):
        if part != "moves" and program[part]:
            lines.append(f"{part}:")
        lines += _lines(program[part], 1)
    lines.append(f"    {'join' if program['join'] else 'leave'} what was spawned")
    return "\n".join(lines)


def _lines(moves: Moves, depth: int) -> list[str]:
    return [line for move in moves for line in _move_lines(move, depth)]


def _move_lines(move: Move, depth: int) -> list[str]:
    pad = "    " * depth
    if move and move[0] == "may":
        first, *rest = _move_lines(move[1], depth)
        return [f"{pad}may {first.strip()}", *rest]
    plain_parts = [repr(part) for part in move[1:] if not isinstance(part, list)]
    lines = [f"{pad}{move[0]}({', '.join(plain_parts)})"]
    for part in move[1:]:
        if isinstance(part, list) and part:
            if isinstance(part[0], str):
                lines += _move_lines(part, depth + 1)
            elif isinstance(part[0], int):
                lines.append(f"{pad}    {part}")
            elif part[0] and isinstance(part[0][0], str):
                lines += _lines(part, depth + 1)
            else:
                for branch in part:
                    lines += [f"{pad}  branch:", *_lines(branch, depth + 1)]
    return lines
