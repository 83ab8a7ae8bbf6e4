"""Commands that run until they are stopped, as processes: dev, worker and server, and a command on a server."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.cli.worker import grpc_address
from tests.conftest import PATIENCE_S
from tests.unit.cli.conftest import Cli

APP = """
from holdfast import task, workflow

@task
def shout(name: str) -> str:
    return name.upper()

@workflow
async def greeting(ctx, name: str) -> str:
    return "Hello, " + await ctx.task(shout, name)

@workflow
async def waiting(ctx, x=None):
    return await ctx.wait_for_signal("go")
"""


class Process:
    """`holdfast …` in a process of its own, with what it has said so far."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._said = folder / f"{arguments[0]}.log"
        with self._said.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-m", "holdfast", *arguments], cwd=folder, stdout=log, stderr=subprocess.STDOUT
            )

    @property
    def said(self) -> str:
        return self._said.read_text()

    def until(self, pattern: str) -> str:
        """What it says that matches."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.said)):
            assert self.process.poll() is None, f"it has ended: {self.said}"
            assert time.monotonic() < deadline, f"it never said {pattern}: {self.said}"
            time.sleep(0.02)
        return found[1]

    def stop(self, by: signal.Signals) -> int:
        self.process.send_signal(by)
        return self.process.wait(PATIENCE_S)


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Process]:
    (folder / "shop.py").write_text(APP)
    process = Process(folder, *arguments)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.wait()


@pytest.fixture
def folder(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the processes run. Their database is the test's."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", database_url)
    return tmp_path


START = ("workflow", "start", "greeting", "--input", '"Ada"', "--wait", "--timeout", "20")


@pytest.mark.slow
@pytest.mark.sqlite_only("its default, a file in this folder, is one of SQLite")
def test_dev_runs_all_and_says_what_to_try(tmp_path):
    """Its own advice works, with and without the server; Ctrl-C ends it cleanly."""
    with running(tmp_path, "dev", "shop.py", "--port", "0", "--grpc-port", "0") as dev:
        url = dev.until(r"http +(http://127\.0\.0\.1:\d+)")
        dev.until(r"(Ctrl-C)")
        by_server = Cli()(*START, "--server", url).stdout
        by_file = Cli()(*START).stdout
        advice = re.search(r"start one +holdfast (workflow start greeting --server \S+)", dev.said)
        ended = dev.stop(signal.SIGINT)

    assert ('"Hello, ADA"\n', '"Hello, ADA"\n') == (by_server, by_file)
    assert advice is not None
    assert (0, False) == (ended, "Traceback" in dev.said)


@pytest.mark.slow
def test_every_command_works_on_a_server(folder):
    """The same answers as on the database, with the same exit codes."""
    with running(folder, "dev", "shop.py", "--port", "0", "--grpc-port", "0") as dev:
        at = ("--server", dev.until(r"http +(http://127\.0\.0\.1:\d+)"))
        cli = Cli()
        started = cli.json("workflow", "start", "waiting", "--workflow-id", "W-1", *at)
        cli("workflow", "start", "waiting", "--workflow-id", "W-2", *at)
        while "WAITING" != cli.json("workflow", "show", "W-1", *at)["execution"]["status"]:
            pass
        shown = cli("workflow", "show", "W-1", *at).stdout
        listed = [found["workflow_id"] for found in cli.lines("workflow", "list", *at)]
        stack = json.loads(cli("workflow", "query", "W-1", "__stack__", *at).stdout)
        cli("workflow", "signal", "W-1", "go", "--input", "7", *at)
        result = cli("workflow", "result", "W-1", *at).stdout
        watched = cli.lines("workflow", "watch", "W-1", *at)
        exported = cli("export", "W-1", *at).stdout
        published = cli.json("event", "publish", "key", *at)
        healthy = cli.json("doctor", *at)["healthy"]
        recovered = cli.json("recover", *at)
        cli.refused("workflow", "show", "nobody", *at, code=4)
        cli.refused("workflow", "signal", "W-1", "go", *at, code=7)
        cli("workflow", "terminate", "W-2", *at)

    assert "send it: holdfast workflow signal W-1 go" in shown
    assert (["W-2", "W-1"], "7\n") == (listed, result)
    assert "shop.py" in stack[0]
    assert "WORKFLOW_COMPLETED" == watched[-1]["type"]
    assert started["workflow_execution_id"] == json.loads(exported)["execution_id"]
    assert (0, True, 1) == (published["delivered"], healthy, recovered["open_executions"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("dev", "shop.py", "--port", "0"), ("server", "--port", "0"), ("worker", "shop.py")]
)
def test_what_still_waits_for_its_database_is_stopped_at_once(tmp_path, command):
    """Not when it has given up: whoever stops services kills what does not listen."""
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,  # lets everybody in, and never says a word
        running(tmp_path, *command, "--db", f"postgresql://app@127.0.0.1:{silent.getsockname()[1]}/flows") as process,
    ):
        silent.settimeout(PATIENCE_S)
        with silent.accept()[0]:
            begun = time.monotonic()
            ended = process.stop(signal.SIGTERM)
            took_s = time.monotonic() - begun

    assert (0, "stopped before it had begun\n") == (ended, process.said)
    assert took_s < 5


@pytest.mark.slow
def test_a_worker_works_on_a_database(folder):
    """SIGTERM ends it cleanly."""
    with running(folder, "worker", "shop:greeting") as lone:
        lone.until(r"(workflows +greeting \(version 1\)\ntasks +none)")
        assert 0 == lone.stop(signal.SIGTERM)
    with running(folder, "worker", "shop", "--grace", "1s") as worker:
        worker.until(r"(tasks +shout)")
        said = Cli()(*START).stdout
        ended = worker.stop(signal.SIGTERM)

    assert ('"Hello, ADA"\n', 0, False) == (said, ended, "Traceback" in worker.said)


@pytest.mark.slow
def test_a_server_asks_for_keys(folder):
    """With a key made on the database the key's rights count; without one it answers 6."""
    cli = Cli()
    key = cli("key", "create", "ci", "--role", "reader").stdout.strip()
    admin = cli.json("key", "create", "boss", "--role", "admin")
    with running(folder, "server", "--port", "0", "--grpc-port", "0") as server:
        at = ("--server", server.until(r"http +(http://127\.0\.0\.1:\d+)"))
        without = cli.refused("workflow", "list", *at, code=6)
        with_key = cli.lines("workflow", "list", *at, "--api-key", key)
        forbidden = cli.refused("key", "create", "more", "--role", "admin", *at, "--api-key", key, code=6)
        listed = cli.lines("key", "list", *at, "--api-key", admin["text"])
        rotated = cli.json("key", "rotate", listed[-1]["key_id"], *at, "--api-key", admin["text"])
        revoked = cli.json("key", "revoke", listed[-1]["key_id"], *at, "--api-key", admin["text"])
        made = cli("key", "create", "w", "--role", "worker", *at, "--api-key", admin["text"]).stdout
        ended = server.stop(signal.SIGTERM)

    assert ("HOLDFAST_API_KEY" in without, []) == (True, with_key)
    assert "[forbidden]" in forbidden
    assert ["boss", "ci"] == [one["name"] for one in listed]
    assert ("hf_", "hf_", "revoked", 0) == (rotated["text"][:3], made[:3], revoked["state"], ended)


@pytest.mark.slow
def test_a_worker_works_for_a_server(folder):
    """It needs no database, only the server's address and a key."""
    cli = Cli()
    key = cli("key", "create", "w", "--role", "worker").stdout.strip()
    admin = cli("key", "create", "a", "--role", "admin").stdout.strip()
    with running(folder, "server", "--port", "0", "--grpc-port", "0") as server:
        http, grpc = server.until(r"http +(http://\S+)"), server.until(r"grpc +(grpc://\S+)")
        with running(folder, "worker", "shop", "--server", grpc, "--api-key", key) as worker:
            worker.until(r"(tasks +shout)")
            said = cli(*START, "--server", http, "--api-key", admin).stdout
            ended = worker.stop(signal.SIGTERM)

    assert ('"Hello, ADA"\n', 0, False) == (said, ended, "Traceback" in worker.said)


def test_workers_find_the_grpc_port_of_a_server():
    """The address of its HTTP is taken for the default port."""
    given = ("grpc://h:1", "http://h:8233", "https://[::1]:8233/x", "grpcs://a,b")

    assert ["grpc://h:1", "grpc://h:7234", "grpcs://[::1]:7234", "grpcs://a,b"] == [grpc_address(url) for url in given]


@pytest.mark.slow
def test_a_server_without_keys_does_not_listen_to_others(folder):
    """It says why, in one line, and ends."""
    ended = Cli()("server", "--host", "0.0.0.0", "--port", "0", code=None)

    assert ("holdfast key create" in ended.stderr, True) == (True, ended.exit_code != 0)


@pytest.mark.slow
def test_ctrl_c_ends_a_waiting_command(folder):
    """With 130 and no traceback."""
    with running(folder, "worker", "shop") as worker:
        worker.until(r"(tasks +shout)")
        Cli()("workflow", "start", "waiting", "--workflow-id", "W-1")
        with running(folder, "workflow", "watch", "W-1") as watching:
            watching.until(r"(waits for signal)")
            ended = watching.stop(signal.SIGINT)

    assert (130, False) == (ended, "Traceback" in watching.said)
