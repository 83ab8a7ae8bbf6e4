"""Histories of real runs, and the machine that replays them: shared by the tests of replay.

A crash could have cut a history everywhere except between the rows of one commit of a worker, which are there together
or not at all. After each such cut the program is rebuilt from nothing and asked for its next move, which must be the
recorded one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import msgspec

from holdfast import Engine
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.tokens import execution_key
from holdfast.replay.definition import AnyWorkflow, definition_of
from holdfast.replay.journal import COMMAND_EVENTS, RECORDED_AS
from holdfast.replay.machine import Machine
from holdfast.replay.program import TurnResult
from holdfast.testing.histories import program_maker
from tests.conftest import SECRET

Events = Sequence[e.HistoryEvent]
OBSERVED_AS: dict[type[Any], type[e.TurnEvent]] = {c.ChangeState: e.StateChanged, c.ChangeMetadata: e.MetadataChanged}
"""Replay does not compare these; the same code shows the same all the same."""


class Commits:
    """Watches the commits of engines' workers: which rows of which execution were written together."""

    def __init__(self, *engines: Engine) -> None:
        self._spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for engine in engines:
            self.watch(engine)

    def watch(self, engine: Engine) -> None:
        workers: Any = engine._local.workers
        complete = workers.complete_turn

        def watched(request: Any) -> Any:
            answer = complete(request)
            answer.add_done_callback(lambda done: self._note(request.execution_id, done))
            return answer

        workers.complete_turn = watched

    def _note(self, execution_id: str, done: Any) -> None:
        if not done.cancelled() and done.exception() is None:
            self._spans[execution_id].append((done.result().first_seq, done.result().last_seq))

    def cuts(self, execution_id: str, length: int) -> list[int]:
        """After how many events the history could have ended."""
        inside = {seq for first, last in self._spans[execution_id] for seq in range(first, last)}
        return [length for length in range(1, length + 1) if length not in inside]


def machine_for(fn: AnyWorkflow, execution_id: str = "execution") -> Machine:
    definition = definition_of(fn)
    assert definition is not None
    return Machine(program_maker(definition, "default", execution_id, token_key=_token_key))


def _token_key(execution_id: str) -> bytes:
    return execution_key(SECRET.encode(), "default", execution_id)


def replayed(fn: AnyWorkflow, history: Events, execution_id: str = "execution") -> Machine:
    """The program as its history leaves it; DeterminismError if it makes other moves."""
    machine = machine_for(fn, execution_id)
    try:
        machine.replay(history)
    except BaseException:
        machine.close()  # or its coroutines would end some time later, in the middle of another program
        raise
    return machine


def turns_of(history: Events) -> list[int]:
    """The `up_to` of every recorded turn, in order."""
    return sorted({event.body.up_to for event in history if isinstance(event.body, e.TurnEvent)})


def rows_of(history: Events, up_to: int) -> list[bytes]:
    """What the turn asked for, as it was recorded."""
    return [
        e.encode_body(_without_numbers(event.body))
        for event in history
        if isinstance(event.body, e.TurnEvent)
        and isinstance(event.body, (*COMMAND_EVENTS, *OBSERVED_AS.values()))
        and event.body.up_to == up_to
        and not isinstance(event.body, _BY_ENGINE)
    ]


def rows_for(turn: TurnResult) -> list[bytes]:
    """What the turn asks for, as it would be recorded."""
    return [
        e.encode_body(_as_recorded(command, turn.up_to))
        for command in turn.commands
        if not isinstance(command, c.ContinueWorkflow)
    ]


def _as_recorded(command: c.Command, up_to: int) -> e.EventBody:
    event: Any = (RECORDED_AS | OBSERVED_AS)[type(command)]
    given = {name: value for name, value in _NUMBERS.items() if name in event.__struct_fields__}
    return event(up_to=up_to, **(msgspec.structs.asdict(command) | given))


def _without_numbers(body: e.EventBody) -> e.EventBody:
    given = {name: value for name, value in _NUMBERS.items() if name in body.__struct_fields__}
    return msgspec.structs.replace(body, **given) if given else body


# The engine numbers what is sent; tokens are made from a secret that a replay does not know.
_NUMBERS: dict[str, Any] = {"event_id": 0, "broadcast_id": 0, "token_hash": ""}
_BY_ENGINE = (e.WorkflowContinued,)  # only the engine knows the next run's id


def check_invariants(history: Events) -> None:
    """What holds for every history: no gaps, time never goes back, one outcome for everything, the end is the end."""
    assert list(range(1, len(history) + 1)) == [event.seq for event in history]
    assert sorted(event.at for event in history) == [event.at for event in history]
    outcomes: list[tuple[str, int]] = []
    for event in history:
        body = event.body
        if isinstance(body, e.StepCompleted | e.StepFailed):
            outcomes.append(("step", body.step_no))
        elif isinstance(body, e.TaskCompleted | e.TaskFailed):
            outcomes.append(("task", body.task_no))
        elif isinstance(body, e.PromiseResolved | e.PromiseRejected | e.PromiseTimedOut):
            outcomes.append(("promise", body.promise_no))
        elif isinstance(body, e.EventReceived | e.BroadcastReceived):
            outcomes.append(("wait", body.wait_no))
        elif isinstance(body, e.TimerFired):
            outcomes.append(("timer", body.timer_no))
        if isinstance(body, e.TurnEvent):
            assert body.up_to < event.seq
    assert sorted(set(outcomes)) == sorted(outcomes), "something has two outcomes"
    assert [] == [event.type for event in history[:-1] if event.body.TERMINAL]


def check_whole(fn: Callable[..., Any], history: Events, execution_id: str) -> None:
    """Replayed from nothing, a closed history makes exactly its recorded moves, to the end."""
    with closing(replayed(fn, history, execution_id)) as machine:
        # One that was ended from outside has not come to an end of its own.
        assert machine.ended or not (history[-1].body.TERMINAL and isinstance(history[-1].body, e.TurnEvent))


def check_cuts(fn: Callable[..., Any], history: Events, execution_id: str, cuts: Sequence[int]) -> int:
    """Cut at each of these places, rebuild, and compare the next move with the recorded one; how many were compared."""
    compared = 0
    for cut in cuts:
        prefix = history[:cut]
        known = set(turns_of(prefix))
        coming = [up_to for up_to in turns_of(history[cut:]) if up_to not in known]
        if not coming:
            check_whole(fn, prefix, execution_id)
            continue
        _check_next_turn(fn, history, execution_id, cut, coming[0])
        compared += 1
    return compared


def _check_next_turn(fn: Callable[..., Any], history: Events, execution_id: str, cut: int, up_to: int) -> None:
    # What came later than the turn saw had not come yet, as far as that turn could know.
    seen = [event for event in history[:cut] if event.seq <= up_to or isinstance(event.body, e.TurnEvent)]
    with closing(replayed(fn, seen, execution_id)) as machine:
        waiting_steps = {step.step_no: step.name for step in machine.unstarted_steps()}
        for event in history[cut:]:
            body = event.body
            if isinstance(body, e.StepCompleted | e.StepFailed) and body.up_to <= machine.up_to:
                assert body.name == waiting_steps.get(body.step_no), (
                    f"cut after {cut}: step {body.step_no} is not asked for"
                )
            if event.seq <= up_to:
                machine.feed(event)
        turn = machine.turn()
        assert up_to == turn.up_to
        assert rows_of(history, up_to) == rows_for(turn), (
            f"cut after {cut}: the turn up to {up_to} asks for something else"
        )
        for event in history:
            body = event.body
            if isinstance(body, e.TurnCompleted) and body.up_to == up_to and body.waiting_for:
                assert body.waiting_for == machine.waits(), f"cut after {cut}: waits for something else"
