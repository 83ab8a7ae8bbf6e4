"""A program driven by hand: events in, commands out, without an engine. What it did is replayed at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.replay.journal import RECORDED_AS
from holdfast.replay.program import TurnResult
from tests.replay.recording import machine_for

OBSERVED_AS: dict[type[Any], type[e.TurnEvent]] = {c.ChangeState: e.StateChanged, c.ChangeMetadata: e.MetadataChanged}


class Driven:
    """One execution. Every turn is recorded as the engine would record it."""

    def __init__(self, fn: Callable[..., Any], **started: Any) -> None:
        self.fn = fn
        self.machine = machine_for(fn)
        self.history: list[e.HistoryEvent] = []
        self._turns: list[tuple[int, list[e.HistoryEvent], list[Any]]] = []
        self._started = {"kind": "k", "workflow_id": "w", **started}

    @property
    def program(self) -> Any:
        return self.machine._program

    def start(self, *with_it: e.EventBody, input: str = "null") -> TurnResult:
        return self.turn(e.WorkflowStarted(**self._started, input=Raw(input.encode())), *with_it)

    def turn(self, *bodies: e.EventBody) -> TurnResult:
        """Let these events come, run a turn, and record what it asks for."""
        before = len(self.history)
        pending_events = [self._add(body) for body in bodies]
        for event in pending_events:
            self.machine.feed(event)
        done = self.machine.turn()
        for command in done.commands:
            self._add(_recorded(command, done.up_to))
        if not self.machine.ended:
            self._add(e.TurnCompleted(up_to=done.up_to, waiting_for=self.machine.waits()))
        self._turns.append((before, pending_events, done.commands))
        return done

    def _add(self, body: e.EventBody) -> e.HistoryEvent:
        number = len(self.history) + 1
        event = e.HistoryEvent(number, number * 1_000_000, body)
        self.history.append(event)
        return event

    def check(self) -> None:
        """Rebuilt before each of its turns, the program asks for the same; rebuilt at the end, it stands there."""
        for before, pending_events, commands in self._turns:
            machine = machine_for(self.fn)
            machine.replay(self.history[:before])
            for event in pending_events:
                machine.feed(event)
            assert commands == machine.turn().commands
            machine.close()
        machine = machine_for(self.fn)
        machine.replay(self.history)
        assert self.machine.ended == machine.ended
        assert self.machine.waits() == machine.waits()
        machine.close()
        self.machine.close()


def _recorded(command: Any, up_to: int) -> e.EventBody:
    fields = msgspec.structs.asdict(command)
    if isinstance(command, c.ContinueWorkflow):
        fields = {"new_execution_id": "next", "kind": command.kind or "k", "version": "1", "input": command.input}
    if isinstance(command, c.Publish | c.ThrowBroadcast):
        fields["event_id" if isinstance(command, c.Publish) else "broadcast_id"] = 1
    kind: Any = {**RECORDED_AS, **OBSERVED_AS}[type(command)]
    return kind(up_to=up_to, **fields)


def signalled(name: str, value: str = "null") -> e.SignalReceived:
    return e.SignalReceived(signal_name=name, signal_value=Raw(value.encode()))


def asked(name: str, value: str = "null", update_id: str = "u1") -> e.UpdateRequested:
    return e.UpdateRequested(update_id=update_id, update_name=name, input=Raw(value.encode()))


def completed(number: int = 1, result: str = "null") -> e.TaskCompleted:
    return e.TaskCompleted(task_no=number, result=Raw(result.encode()))


def fired(number: int = 1) -> e.TimerFired:
    return e.TimerFired(timer_no=number)


def result_of(turn: TurnResult) -> Any:
    """What the workflow gave when it ended with this turn."""
    end = turn.commands[-1]
    assert isinstance(end, c.CompleteWorkflow), end
    return msgspec.json.decode(end.result)
