"""The demo as a newcomer meets it: real processes on a real file."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_S = 40

pytestmark = pytest.mark.slow


class Process:
    """A script of the examples and what it has printed so far."""

    def __init__(self, script: str, *arguments: str) -> None:
        command = [sys.executable, "-W", "error", "-m", f"examples.{script}", *arguments]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def output(self) -> str:
        return "".join(self._lines)

    def sees(self, pattern: str) -> None:
        """Wait for a line; fail with the whole output if it does not come."""
        deadline = time.monotonic() + PATIENCE_S
        with self._changed:
            while not re.search(pattern, self.output, re.MULTILINE):
                left = deadline - time.monotonic()
                if left <= 0 or (self._process.poll() is not None and not self._reader.is_alive()):
                    pytest.fail(f"no line like {pattern!r} in:\n{self.output}")
                self._changed.wait(min(left, 0.5))

    def ends(self) -> int:
        code = self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Stage:
    """Starts scripts on one database file and leaves none of them behind."""

    def __init__(self, db: Path) -> None:
        self.db = db
        self._started: list[Process] = []

    def start(self, script: str, *arguments: str) -> Process:
        process = Process(script, "--db", str(self.db), *arguments)
        self._started.append(process)
        return process

    def run(self, script: str, *arguments: str) -> str:
        process = self.start(script, *arguments)
        assert 0 == process.ends(), process.output
        return process.output

    def clear(self) -> None:
        for process in self._started:
            process.stop()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "demo.db")
    yield stage
    stage.clear()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, str]]:
    """A stage on which the demo has run once, and what it printed."""
    stage = Stage(tmp_path_factory.mktemp("finished") / "demo.db")
    try:
        yield stage, stage.run("run", "--once", "--fast")
    finally:
        stage.clear()


def test_the_demo_runs_all_examples_to_their_end(finished):
    """With --once it ends by itself, and every order has ended in its own way."""
    _, output = finished

    assert 'hello:world        completed: "Hello, world!"' in output
    assert 'ORDER-1            task charge_card done (attempt 3): "payment' in output
    assert 'ORDER-1            completed: {"outcome":"shipped"' in output
    assert 'ORDER-2            completed: {"outcome":"not shipped in time"' in output
    assert 'ORDER-3            completed: {"outcome":"not paid in time"' in output
    assert "conversation:bob   completed: 2" in output
    assert "1 workflow still open (conversation:ada)" in output


def test_a_killed_demo_continues_where_it_was(stage):
    """After kill -9 the next start goes on with every open workflow, and nothing that was done is done again."""
    first = stage.start("run")
    first.sees(r"ORDER-1 .* task pack queued")
    first.sees(r"ORDER-2 .* waiting for signal shipped")
    first.send_signal(signal.SIGKILL)
    first.ends()

    second = stage.start("run", "--once")
    second.sees(r"continuing \d workflows from last time")
    stage.run("send", "ORDER-2", "TRACK-9")
    assert 0 == second.ends(), second.output

    assert 'ORDER-1            completed: {"outcome":"shipped"' in second.output
    assert re.search(r'ORDER-2 +completed: \{"outcome":"shipped".*"TRACK-9"', second.output), second.output
    assert 'ORDER-3            completed: {"outcome":"not paid in time"' in first.output + second.output
    for order in ("ORDER-1", "ORDER-2"):
        assert f"{order}            step reserve_stock" not in second.output
        assert f"{order}            task charge_card" not in second.output


def test_ctrl_c_stops_the_demo_and_a_message_from_another_process_reaches_it(stage):
    """What another process sends is answered; Ctrl-C is a clean end that says what is left."""
    demo = stage.start("run", "--fast")
    demo.sees("To try now, in another terminal")
    stage.run("send", "conversation:ada", "hello from elsewhere")
    demo.sees("you said 'hello from elsewhere'")
    shown = stage.run("show", "conversation:ada")
    demo.send_signal(signal.SIGINT)

    assert 0 == demo.ends(), demo.output
    assert "status   WAITING" in shown
    assert "waits for signal message" in shown
    assert '{"text":"hello from elsewhere","end":false}' in shown
    assert re.search(r"^stopped; .*conversation:ada", demo.output, re.MULTILINE), demo.output


def test_a_message_sent_while_the_demo_is_down_is_answered_at_the_next_start(finished):
    """A signal is stored when it is sent, whether or not anybody runs."""
    stage, _ = finished
    stage.run("send", "conversation:ada", "anybody there?")

    output = stage.run("run", "--once", "--fast")

    assert "continuing 1 workflow from last time" in output
    assert "you said 'anybody there?'" in output


@pytest.mark.parametrize("script", [["send", "ORDER-1", "TRACK-1"], ["show"]])
def test_the_scripts_say_that_the_demo_has_to_be_started_first(stage, script):
    """Without a database file there is a sentence, not a traceback, and no file is made."""
    process = stage.start(*script)

    assert 1 == process.ends()
    assert process.output.startswith("there is no ")
    assert not stage.db.exists()


def test_a_signal_to_a_closed_order_is_refused_with_the_reason(finished):
    """The sender learns that nothing was delivered."""
    stage, _ = finished
    process = stage.start("send", "ORDER-1", "TRACK-1")

    assert 1 == process.ends()
    assert "not sent: " in process.output
    assert "is closed (COMPLETED)" in process.output
