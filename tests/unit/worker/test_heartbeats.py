"""The worker's pulse."""

import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from holdfast.config import WorkerConfig
from holdfast.worker.heartbeats import Pulse


def test_it_stops_while_a_heartbeat_is_unanswered():
    """The answer may have to come from the very loop that stops it."""
    asked = threading.Event()

    def heartbeat(request):
        asked.set()
        return Future()

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
    assert asked.wait(10)
    ended = threading.Thread(target=pulse.stop, daemon=True)
    ended.start()
    ended.join(10)

    assert not ended.is_alive()
