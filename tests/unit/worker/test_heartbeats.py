"""The worker's pulse."""

import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from holdfast.config import WorkerConfig
from holdfast.errors import OutcomeUnknown, StorageBusy
from holdfast.worker.heartbeats import Pulse


def beating(heartbeat: Any) -> Pulse:
    host: Any = SimpleNamespace(
        config=WorkerConfig(lease_s=600.0),
        workers=SimpleNamespace(heartbeat=heartbeat),
        session="s",
        org="default",
        BEATS_BY_ITSELF=True,
    )
    tasks: Any = SimpleNamespace(
        shortest_heartbeat_s=lambda: 0.003,
        take_beats=lambda: (),
        tokens=lambda: (),
        on_said=lambda wake: None,
        said_in_s=lambda: None,
        send_again=lambda beats: None,
    )
    pulse = Pulse(host, tasks, lost=print, stale=print)
    pulse.start()
    return pulse


def test_it_goes_on_when_nobody_knows_whether_a_heartbeat_counts():
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

    pulse = beating(heartbeat)
    assert again.wait(10)
    pulse.stop()


def test_it_stops_while_a_heartbeat_is_unanswered():
    """The answer may have to come from the very loop that stops it."""
    asked = threading.Event()

    def heartbeat(request: Any) -> Future[Any]:
        asked.set()
        return Future()

    pulse = beating(heartbeat)
    assert asked.wait(10)
    ended = threading.Thread(target=pulse.stop, daemon=True)
    ended.start()
    ended.join(10)

    assert not ended.is_alive()
