"""The worker's pulse."""

import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from holdfast.config import WorkerConfig
from holdfast.errors import OutcomeUnknown, StorageBusy
from holdfast.worker.heartbeats import Heartbeater


def beating(heartbeat: Any) -> Heartbeater:
    host: Any = SimpleNamespace(
        config=WorkerConfig(lease_s=600.0),
        workers=SimpleNamespace(heartbeat=heartbeat),
        session="s",
        org="default",
        SENDS_HEARTBEATS=True,
    )
    tasks: Any = SimpleNamespace(
        shortest_heartbeat_s=lambda: 0.003,
        take_beats=lambda: (),
        tokens=lambda: (),
        on_output=lambda wake: None,
        output_due_in_s=lambda: None,
        send_again=lambda beats: None,
    )
    heartbeater = Heartbeater(host, tasks, lost=print, stale=print)
    heartbeater.start()
    return heartbeater


def test_it_continues_when_nobody_knows_whether_a_heartbeat_counts():
    """The database was lost while it committed: the next one tells."""
    answered = iter((OutcomeUnknown(), StorageBusy()))
    again = threading.Event()

    def heartbeat(request: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        error = next(answered, None)
        if error is None:
            again.set()
        else:
            answer.set_exception(error)
        return answer

    heartbeater = beating(heartbeat)
    assert again.wait(10)
    heartbeater.stop()


def test_it_stops_while_a_heartbeat_is_unanswered():
    """The answer may have to come from the very loop that stops it."""
    asked = threading.Event()

    def heartbeat(request: Any) -> Future[Any]:
        asked.set()
        return Future()

    heartbeater = beating(heartbeat)
    assert asked.wait(10)
    ended = threading.Thread(target=heartbeater.stop, daemon=True)
    ended.start()
    ended.join(10)

    assert not ended.is_alive()
