"""Any program: random ones over the whole of `ctx` are run, then their histories are cut at every place where a crash
could cut them, and replayed from nothing: the same commands, the same result.

Thousands run against a made-up engine in memory (`world.py`), some tens against the real one. More of them run with
`HOLDFAST_PROGRAMS=100000`; a failure prints the seed with which `HOLDFAST_SEED` repeats it, and the program cut down to
what still fails.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from random import Random, SystemRandom
from typing import Any

import msgspec
import pytest

from holdfast import Engine, EngineConfig, StoreConfig, WorkerConfig
from holdfast.errors import HoldfastError, ProgramError
from holdfast.frontends.python.context import WorkflowContext
from holdfast.model import events as e
from holdfast.replay.machine import Machine
from tests.conftest import STORE, NewDatabase, until
from tests.replay.programs import (
    HANDLED,
    NAMES,
    Author,
    Change,
    Move,
    Moves,
    act_as_task,
    definition_of,
    kid,
    rewritten,
    smaller,
    source,
)
from tests.replay.recording import Commits, check_cuts, check_invariants, check_whole
from tests.replay.world import EXECUTION_ID, World, rebuilt, recorded
from verification import invariants
from verification.invariants.commands import check_commands
from verification.invariants.records import Record, own_reset

PROGRAMS = int(os.environ.get("HOLDFAST_PROGRAMS", "2000"))
SEED = int(os.environ.get("HOLDFAST_SEED", str(SystemRandom().randrange(10**9))))
PARTS = 4
SHRINKING_S = 10.0

# An execution that is thrown away runs its clean-up into the first wait, which may leave a bare coroutine behind.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")

Program = dict[str, Any]
Check = Callable[[Program, int], World]


def written(seed: int) -> Program:
    return Author(Random(f"program {seed}")).program()


# --- in memory ----------------------------------------------------------------------------------------------------


def replays(program: Program, seed: int) -> World:
    """Played once, it plays the same again from every point of its history."""
    world = World(program, Random(f"world {seed}"))
    world.play()
    check_invariants(world.history)
    assert [] == [str(fault) for fault in check_commands(recorded(world))]
    check_whole(world.code, world.history, EXECUTION_ID)
    check_cuts(world.code, world.history, EXECUTION_ID, world.cuts)
    if world.stuck is not None:
        _is_stuck_again(world, world.stuck)
    return world


def _is_stuck_again(world: World, error: ProgramError) -> None:
    """A program that can't go on can't go on for the same reason after a crash."""
    with closing(rebuilt(world)) as machine, pytest.raises(type(error)) as caught:
        machine.turn()
    assert str(error) == str(caught.value)


def old_code_goes_on(program: Program, seed: int) -> World:
    """A history made before a patch is replayed by the code with the patch, and goes on with it."""
    world = World(_unpatched(program), Random(f"world {seed}"))
    world.play()
    for cut in world.cuts:
        with closing(rebuilt(world, program=program, length=cut)) as machine, suppress(ProgramError):
            if machine.has_pending_events:
                machine.turn()
    return world


def deprecated_patches_replay(program: Program, seed: int) -> World:
    """A history made with patches is replayed by the code that has deprecated them."""
    world = World(program, Random(f"world {seed}"))
    world.play()
    for cut in world.cuts:
        rebuilt(world, program=_deprecated(program), length=cut).close()
    return world


def _unpatched(program: Program) -> Program:
    """The code before its patches: without asking for them, on the old way."""

    def old(move: Move) -> Moves:
        if move[0] == "if_patched":
            return [["times", 1, move[3]]]
        return [["yes"]] if move[0] == "patched" else [move]

    return _rewritten(program, old)


def _deprecated(program: Program) -> Program:
    def new(move: Move) -> Moves:
        if move[0] == "if_patched":
            return [["new_way", move[1], move[2]]]
        return [["deprecate", move[1]]] if move[0] == "patched" else [move]

    return _rewritten(program, new)


def _rewritten(program: Program, change: Change) -> Program:
    return {key: rewritten(part, change) if isinstance(part, list) else part for key, part in program.items()}


# --- failing ------------------------------------------------------------------------------------------------------


def run_all(check: Check, count: int, part: int = 0, write: Callable[[int], Program] = written) -> None:
    """Every program of this part; the first that fails is shown, as small as it gets."""
    for number in range(part, count, PARTS):
        seed = SEED + number
        program = write(seed)
        error = failure(check, program, seed)
        if error is not None:
            smallest = shrunk(program, partial(_checked, check, seed), type(error))
            raise AssertionError(explained(smallest, check, seed)) from error


def failure(check: Check, program: Program, seed: int) -> Exception | None:
    """What goes wrong. Programs are never run while an exception is handled: theirs would refer to it."""
    try:
        check(program, seed)
    except Exception as error:
        return error
    return None


def _checked(check: Check, seed: int, program: Program) -> World:
    return check(program, seed)


def shrunk(program: Program, check: Callable[[Program], object], kind: type[Exception]) -> Program:
    """As much of a failing program taken away as can be, as long as it fails in the same way."""
    deadline = time.monotonic() + SHRINKING_S
    found: Program | None = program
    while found is not None:
        program = found
        found = next(
            (less for less in _less(program) if time.monotonic() < deadline and _fails(check, less, kind)), None
        )
    return program


def _fails(check: Callable[[Program], object], program: Program, kind: type[Exception]) -> bool:
    try:
        check(program)
    except kind:
        return True
    except Exception:
        return False
    return False


def _less(program: Program) -> Iterator[Program]:
    """The program with one thing less."""
    for key, part in program.items():
        if isinstance(part, list):
            yield from ({**program, key: less} for less in smaller(part))


def explained(program: Program, check: Check, seed: int) -> str:
    """All one needs to find the fault."""
    error = failure(check, program, seed)
    fault = (
        f"{type(error).__name__}: {error}" if error is not None else "(not again: something besides the seed counts)"
    )
    events = [f"  {event.seq:3} {event.type} {_shown(event)}" for event in World.latest]
    return "\n".join(
        [
            f"seed {seed} fails; repeat it with HOLDFAST_SEED={seed} HOLDFAST_PROGRAMS=1",
            source(program),
            *events,
            fault,
        ]
    )


def _shown(event: e.HistoryEvent) -> str:
    hidden = {"line", "retry", "timeouts", "failure", "input", "queue", "depth"}
    fields = {key: value for key, value in msgspec.structs.asdict(event.body).items() if key not in hidden and value}
    return msgspec.json.encode(fields).decode()


# --- the laws -----------------------------------------------------------------------------------------------------


def test_some_programs_replay_as_they_ran():
    """As below, for a few programs: what is badly broken shows in the quick proof."""
    run_all(replays, PROGRAMS // 20 * PARTS)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_any_program_replays_as_it_ran(part: int):
    """Whatever the program and however its run went: cut anywhere and rebuilt, it makes its recorded moves again."""
    run_all(replays, PROGRAMS, part)


def with_patches(seed: int) -> Program:
    """A program whose author likes patches."""
    rng = Random(f"patches {seed}")
    program = written(seed)

    def patch(move: Move) -> Moves:
        if rng.random() < 0.2:
            return [["if_patched", rng.choice("pqr"), [move], [["count", "a"]]]]
        return [["patched", rng.choice("pqr")], move] if rng.random() < 0.2 else [move]

    return _rewritten(program, patch)


def test_code_with_a_patch_takes_over_from_the_code_before_it():
    """Old histories go the old way, wherever they stand; nothing is in the way of going on."""
    run_all(old_code_goes_on, PROGRAMS // 4, write=with_patches)


def test_code_without_a_patch_takes_over_from_the_code_with_it():
    """Deprecated where it was, its marks are still replayed."""
    run_all(deprecated_patches_replay, PROGRAMS // 4, write=with_patches)


# --- the laws can be broken ---------------------------------------------------------------------------------------


def _finds(check: Check = replays, count: int = 400) -> str:
    """What the first failing program shows."""
    for seed in range(count):
        program = written(seed)
        error = failure(check, program, seed)
        if error is not None:
            return explained(shrunk(program, partial(_checked, check, seed), type(error)), check, seed)
    raise AssertionError(f"none of {count} programs has noticed")


def test_signals_seen_too_early_are_noticed(monkeypatch: pytest.MonkeyPatch):
    """A replay that lets a program see all its signals from the start."""
    replay = Machine.replay

    def early(self: Machine, history: Any) -> None:
        for event in history:
            if isinstance(event.body, e.SignalReceived):
                queue = self._signals.setdefault(event.body.signal_name, deque())
                queue.append((event.seq, event.body.signal_value))
        replay(self, history)

    monkeypatch.setattr(Machine, "replay", early)

    assert "HOLDFAST_SEED=" in _finds()


def test_chance_that_is_not_the_same_again_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """Random numbers from somewhere else."""
    monkeypatch.setattr(WorkflowContext, "random", property(lambda _: SystemRandom()))

    assert "chance()" in _finds()


def test_a_time_that_is_not_the_same_again_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """Events delivered with the time of the replay's last event."""
    deliver = Machine._deliver

    def late(self: Machine, event: e.HistoryEvent) -> None:
        deliver(self, event if not self.replaying else e.HistoryEvent(event.seq, event.at + 7, event.body))

    monkeypatch.setattr(Machine, "_deliver", late)

    assert "HOLDFAST_SEED=" in _finds()


def test_a_number_used_twice_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """Children numbered from 1 again after a replay."""
    replay = Machine.replay

    def forgetful(self: Machine, history: Any) -> None:
        replay(self, history)
        self._made["child"] = 0

    monkeypatch.setattr(Machine, "replay", forgetful)

    assert "child" in _finds()


def test_a_failing_program_is_cut_down():
    """To the one move that matters."""

    def no_drain(program: Program) -> None:
        assert "drain" not in str(program)

    seed = next(seed for seed in range(1_000) if "drain" in str(written(seed)) and len(str(written(seed))) > 1_000)
    smallest = shrunk(written(seed), no_drain, AssertionError)

    assert 1 == sum(line.strip().removeprefix("may ").startswith("drain(") for line in source(smallest).splitlines())
    assert len(source(smallest).splitlines()) <= 5


# --- against the real engine --------------------------------------------------------------------------------------


async def run_for_real(seed: int, new_database: NewDatabase) -> None:
    """Two executions at once, called from outside while they run; then each history, cut at every place."""
    rng = Random(f"real {seed}")
    program = written(seed)
    code = definition_of(program)
    worker = WorkerConfig(
        cached_executions=rng.choice((0, 1, 10_000, 10_000)), replay_always=rng.random() < 0.2, shutdown_grace_s=0.2
    )
    config = EngineConfig(store=StoreConfig(synchronous="normal"), worker=worker)
    commits = Commits()

    def opened(url: str) -> Engine:
        engine = Engine(url, workflows=[code, kid], tasks=[act_as_task], config=config)
        commits.watch(engine)
        return engine

    with new_database() as place:
        restart = rng.random() < 0.3
        url = "sqlite://" if STORE == "sqlite" and not restart else place
        async with opened(url) as engine:
            start = engine.client.start_workflow
            ids = [(await start(code, program, workflow_id=name)).id for name in ("first", None)]
            await asyncio.gather(*(call(engine.client.workflow(each), program, rng) for each in ids))
            if not restart:
                await check_real(engine, code, commits, rng)
        if restart:
            async with opened(url) as engine:
                await check_real(engine, code, commits, rng)


async def call(handle: Any, program: Program, rng: Random) -> None:
    names = NAMES + HANDLED if program["class"] else NAMES
    for number in range(rng.randint(0, 5)):
        with suppress(HoldfastError, TimeoutError):
            if program["class"] and rng.random() < 0.3:
                await asyncio.wait_for(handle.update("ask", rng.choice((number, -number))), 0.05)
            elif rng.random() < 0.1:
                await handle.cancel("enough")
            else:
                await handle.signal(rng.choice(names), number)
        await asyncio.sleep(rng.choice((0, 0, 0.001, 0.004)))


async def check_real(engine: Engine, code: Any, commits: Commits, rng: Random) -> None:
    """Every execution, and then those that go on from somewhere in the past of one of them."""
    await _all_closed(engine)
    await _check_records(engine, code, commits)
    if await _go_back(engine, rng):
        await _all_closed(engine)
        await _check_records(engine, code, commits)


async def _check_records(engine: Engine, code: Any, commits: Commits) -> None:
    records: list[Record] = []

    async def sound() -> bool:
        """What becomes of the children of those that have closed is decided a moment later."""
        records[:] = await invariants.read(engine.storage)
        return not invariants.check(records, at_rest=True)

    with suppress(AssertionError):
        await until(sound, timeout=1.0)
    assert [] == [str(fault) for fault in invariants.check(records, at_rest=True)]
    for record in records:
        if record.execution_row.kind == "kid":
            continue
        execution_id, history = record.execution_row.id, list(record.history)
        reset = own_reset(record)
        cuts = [cut for cut in commits.cuts(execution_id, len(history)) if reset is None or cut >= reset.seq]
        check_invariants(history)
        check_whole(code, history, execution_id)
        check_cuts(code, history, execution_id, cuts)


async def _go_back(engine: Engine, rng: Random) -> int:
    """Reset or fork some executions at some event; how many."""
    done = 0
    for view in (await engine.client.list_workflows(limit=1_000)).items:
        handle = engine.client.workflow(view.workflow_execution_id)
        point = rng.randint(1, len(await handle.history()))
        with suppress(HoldfastError):
            if rng.random() < 0.5:
                await handle.reset(point, reapply_signals=rng.random() < 0.5)
            else:
                await handle.fork(point, reapply_signals=rng.random() < 0.5)
            done += 1
    return done


async def _all_closed(engine: Engine) -> None:
    """Those that wait for ever are cancelled; those that will not listen, or can't go on, are left as they are."""

    async def settled() -> bool:
        page = await engine.client.list_workflows(limit=1_000)
        return all(view.status in {"WAITING", "STUCK"} or not view.status.is_open for view in page.items)

    async def closed() -> bool:
        page = await engine.client.list_workflows(limit=1_000)
        return all(view.status == "STUCK" or not view.status.is_open for view in page.items)

    with suppress(AssertionError):
        await until(closed, timeout=0.3)
    for view in (await engine.client.list_workflows(limit=1_000)).items:
        await engine.client.cancel_workflow(view.workflow_execution_id)
    with suppress(AssertionError):
        await until(closed, timeout=0.5)
    await until(settled)


def real(seeds: range, new_database: NewDatabase) -> None:
    for seed in seeds:
        try:
            asyncio.run(run_for_real(seed, new_database))
        except Exception as error:
            raise AssertionError(f"seed {seed} fails on a real engine\n{source(written(seed))}\n{error}") from error


def test_some_programs_on_a_real_engine(new_database):
    """As above, for a few programs, with the invariants of all executions: what is badly broken shows at once."""
    real(range(SEED, SEED + 15), new_database)


@pytest.mark.slow
def test_more_programs_on_a_real_engine(new_database):
    """As above, for more."""
    real(range(SEED + 15, SEED + 75), new_database)
