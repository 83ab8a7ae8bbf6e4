"""A PostgreSQL server of one's own, for tests and for development: started here, gone with the process that started it.

It listens on 127.0.0.1 and trusts everybody there, so it is for machines on which everybody is trusted. It is stopped
at the end of its block, at the end of the process, and by a watchdog when the process is killed.

From the command line: `python -m verification.postgres [--durable] [--data DIR] [--port PORT] [-- COMMAND …]`
prints the URL and serves until Ctrl-C, or until the command ends, which finds the URL in HOLDFAST_DATABASE_URL.
"""

from __future__ import annotations

import argparse
import atexit
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from holdfast.errors import HoldfastError, InvalidRequest
from verification.errors import PostgresNotStarted
from verification.postgres_binaries import (
    BIN_VARIABLE,
    Account,
    account_for,
    copy_installation,
    find_binaries,
    major_version,
    reachable,
)
from verification.postgres_databases import create_database, drop_database, url_of

URL_VARIABLE = "HOLDFAST_DATABASE_URL"
USER = "holdfast"
MAINTENANCE = "postgres"  # the database that every server has

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
RAM = Path("/dev/shm")  # noqa: S108 - a folder with an unguessable name is made in it
RAM_NEEDED = 1 << 30
LONGEST_SOCKET_FOLDER = 80  # the path of a socket has to fit into about 100 bytes

# Below the ports that systems hand out to outgoing connections: a client that tries to reach a stopped server may
# otherwise be given the server's own port, be connected to itself, and keep the server from coming back.
PORTS = range(20_000, 32_000)

COMMON = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "log_min_messages": "warning",
    "logging_collector": "off",
}
# Nothing survives a crash of the machine, and nothing has to.
QUICK = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",  # it would visit hundreds of databases that are dropped within a second
    "dynamic_shared_memory_type": "mmap",  # in the data folder, where nothing of a killed server is left behind
}
STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# Told the process id of the server after each start, that of the command that runs with it, and nothing after each end.
# Its input ends when the process that writes it does, however that came about.
WATCHDOG = r"""
trap '' INT TERM HUP QUIT
server=
command=
while read -r whose pid; do
  case $whose in server) server=$pid ;; command) command=$pid ;; esac
done
end() {
  kill "-$1" "$2"
  tries=0
  while kill -0 "$2" && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -KILL "$2"
}
if [ -n "$command" ]; then end TERM "$command"; fi
if [ -n "$server" ]; then end QUIT "$server"; fi
if [ -n "$1" ]; then rm -rf "$1"; fi
"""


class LocalPostgres:
    """A server, started by `start()` or by entering the block.

    Without a `directory` its data is in memory where there is room (else in a temporary folder, as it is when
    `durable`), and is gone when it is closed. A given directory is kept, and the next server goes on with it. A server
    that is not `durable` does not wait for the disk.

    The calls block. In async code: `await asyncio.to_thread(server.restart)`.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        durable: bool = False,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        binaries: Path | None = None,
    ) -> None:
        self.durable = durable
        self.settings = {**COMMON, **({} if durable else QUICK), **(settings or {})}
        self._kept = directory is not None
        self._given = Path(directory).absolute() if directory is not None else None
        self._given_binaries = binaries
        self._directory: Path | None = None
        self._copied: Path | None = None
        self._port = port
        self._fixed_port = port is not None
        self._server: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._account: Account | None = None
        self._binaries = Path()
        self._owner = os.getpid()
        self._killed = False

    # --- what it is ---

    @property
    def url(self) -> str:
        return self.url_of(MAINTENANCE)

    def url_of(self, database: str) -> str:
        return url_of(f"postgresql://{USER}@127.0.0.1:{self.port}/", database)

    @property
    def port(self) -> int:
        """The same after every restart."""
        if self._port is None:
            raise PostgresNotStarted("the server has no port yet: start it first")
        return self._port

    @property
    def directory(self) -> Path:
        if self._directory is None:
            raise PostgresNotStarted("the server has no directory yet: start it first")
        return self._directory

    @property
    def socket_directory(self) -> Path | None:
        """Where its Unix socket is, for clients that want one; None where the path would be too long."""
        return self.directory if len(str(self.directory)) <= LONGEST_SOCKET_FOLDER else None

    @property
    def log(self) -> str:
        with suppress(FileNotFoundError):
            return (self.directory / "server.log").read_text("utf-8", errors="replace")
        return ""

    @property
    def pid(self) -> int | None:
        """The main process, while it runs."""
        return self._server.pid if self.is_running and self._server is not None else None

    @property
    def is_running(self) -> bool:
        return self._server is not None and self._server.poll() is None

    # --- databases ---

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database, empty or as a copy of `template`. The answer is its URL."""
        return create_database(self.url, name, template)

    def drop_database(self, name: str) -> None:
        drop_database(self.url, name)

    # --- up and down ---

    def start(self) -> None:
        """Start it, and return when it answers."""
        if self.is_running:
            return
        atexit.register(self.close)
        try:
            self._prepare()
            self._launch()
        except BaseException:
            self.close()
            raise

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """`fast` disconnects the clients and writes everything; after `immediate` the next start has to recover."""
        server = self._server
        if server is None:
            return
        if server.poll() is None:
            server.send_signal(STOP_SIGNALS[mode])
        try:
            server.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._ended()

    def kill(self) -> None:
        """All its processes at once, as a crash of the machine would: nothing is written, nobody is told."""
        server = self._server
        if server is None:
            return
        self._killed = True
        # Stopped first, so that it starts no process while they are counted.
        with suppress(ProcessLookupError):
            server.send_signal(signal.SIGSTOP)
        children = _children_of(server.pid)
        for pid in (server.pid, *children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        server.wait()
        _until_gone(children)
        self._ended()

    def restart(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop and start again; the URL stays the same."""
        self.stop(mode)
        self.start()

    @contextmanager
    def ends_with_us(self, command: subprocess.Popen[bytes]) -> Iterator[None]:
        """If this process is killed meanwhile, the command is stopped, too, and before the server."""
        self._tell_watchdog("command", command.pid)
        try:
            yield
        finally:
            self._tell_watchdog("command", None)

    def close(self) -> None:
        """Stop it for good. Data in a directory that was given stays."""
        if os.getpid() != self._owner:
            return  # a forked child: the server is its parent's
        atexit.unregister(self.close)
        self.stop("fast" if self._kept else "immediate")
        self._clean_up_after_kill()
        if self._watchdog is not None:
            self._watchdog.kill()
            self._watchdog.communicate()
            self._watchdog = None
        for made in (self._copied, None if self._kept else self._directory):
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)
        self._directory = self._copied = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- how it is done ---

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _prepare(self) -> None:
        if self._directory is not None:
            return
        binaries = self._given_binaries or find_binaries()
        if self._given is not None:
            _refuse_foreign(self._given)
        self._directory = self._given or Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir=_room(self.durable)))
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._account = account_for(self._data)
        if self._account is not None:
            os.chown(self._directory, self._account.uid, self._account.gid)
        self._watch()
        if not reachable(self._directory, self._account):
            raise self._failure(f"{self._directory} can't be reached by the account that the server runs as")
        self._binaries = self._reachable_binaries(binaries)
        self._initialise()

    def _reachable_binaries(self, binaries: Path) -> Path:
        if reachable(binaries, self._account):
            return binaries
        # Not in memory: programs must not be run from there on every system.
        self._copied = Path(tempfile.mkdtemp(prefix="holdfast-pg-programs-"))
        return copy_installation(binaries, self._copied)

    def _initialise(self) -> None:
        major = major_version(self._binaries)
        made_by = self._data / "PG_VERSION"
        if made_by.exists():
            if (found := made_by.read_text().strip()) != str(major):
                raise self._failure(
                    f"{self._data} was made by PostgreSQL {found}, and this is {major}: name the programs of {found} "
                    f"in {BIN_VARIABLE}, or use another directory"
                )
            return
        options = ["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", *(() if self.durable else ("--no-sync",))]
        # Under another name until it is complete: one that was interrupted is not taken for data.
        unfinished = self.directory / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        done = self._run("initdb", "-D", str(unfinished), *options)
        if done.returncode != 0:
            raise self._failure("initdb has failed", log=done.stdout)
        unfinished.rename(self._data)

    def _launch(self) -> None:
        while True:
            if self._port is None:
                self._port = self._last_port() or _free_port()
            try:
                self._launch_on(self._port)
                break
            except PostgresNotStarted as error:
                if self._fixed_port or "Address already in use" not in error.log:
                    raise
                self._port = None  # somebody was quicker
        self._fixed_port = True
        if self._kept:
            (self.directory / "port").write_text(str(self._port))

    def _last_port(self) -> int | None:
        """Data that is kept is found at the same URL again, where that is possible."""
        with suppress(OSError, ValueError):
            port = int((self.directory / "port").read_text())
            return port if _is_free(port) else None
        return None

    def _launch_on(self, port: int) -> None:
        settings = {**self.settings, "port": str(port), "unix_socket_directories": str(self.socket_directory or "")}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        log = self.directory / "server.log"
        with log.open("ab") as output:
            begin = output.tell()
            self._server = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,  # Ctrl-C is for the one who started it
                **self._as_account(),
            )
        self._tell_watchdog("server", self._server.pid)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready(self._server.pid):
            ended = self._server.poll() is not None
            if ended or time.monotonic() > deadline:
                self.stop("immediate")
                said = log.read_bytes()[begin:].decode(errors="replace")
                raise self._failure("the server ended" if ended else "the server does not get ready", log=said)
            time.sleep(0.01)
        self._killed = False

    def _is_ready(self, pid: int) -> bool:
        """As pg_ctl finds out: the server's own file has its process id first and its state in the eighth line."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _ended(self) -> None:
        self._server = None
        self._tell_watchdog("server", None)

    def _watch(self) -> None:
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", WATCHDOG, "holdfast-postgres-watchdog", "" if self._kept else str(self._directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def _tell_watchdog(self, whose: Literal["server", "command"], pid: int | None) -> None:
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with suppress(BrokenPipeError):
                self._watchdog.stdin.write(f"{whose} {pid or ''}\n".encode())
                self._watchdog.stdin.flush()

    def _clean_up_after_kill(self) -> None:
        """A killed server leaves shared memory behind that only the next server on the same data takes away."""
        if self._killed and self._directory is not None:
            self._run("postgres", "--single", "-D", str(self._data), "template1")
            self._killed = False

    def _as_account(self) -> dict[str, Any]:
        return {} if self._account is None else self._account.popen

    def _failure(self, what: str, *, log: str = "") -> PostgresNotStarted:
        last = "\n".join(log.strip().splitlines()[-20:])
        return PostgresNotStarted(f"{what}:\n{last}" if last else what, directory=str(self.directory), log=log)

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._binaries / program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=self.directory,
            **self._as_account(),
        )


# --- where, and who -----------------------------------------------------------------------------------------------


def _room(durable: bool) -> str:
    if not durable and os.access(RAM, os.W_OK) and shutil.disk_usage(RAM).free >= RAM_NEEDED:
        return str(RAM)
    return tempfile.gettempdir()


def _refuse_foreign(directory: Path) -> None:
    """As root the directory is given to another account, so it must not be somebody's home."""
    if not directory.exists() or (directory / "data" / "PG_VERSION").exists():
        return
    if not directory.is_dir() or {entry.name for entry in directory.iterdir()} - {"data.new", "server.log", "port"}:
        raise InvalidRequest(
            f"{directory} holds other things than a PostgreSQL server of Holdfast: name a directory that is empty or "
            "not there yet",
            field="directory",
        )


def _free_port() -> int:
    for port in random.sample(PORTS, 100):
        if _is_free(port):
            return port
    raise PostgresNotStarted(f"no port between {PORTS.start} and {PORTS.stop} seems to be free: pass one as `port`")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _children_of(parent: int) -> list[int]:
    return [pid for pid, of, state in _processes() if of == parent and state != "Z"]


def _until_gone(pids: Sequence[int]) -> None:
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while any(pid in pids and state != "Z" for pid, _, state in _processes()) and time.monotonic() < deadline:
        time.sleep(0.01)


def _processes() -> list[tuple[int, int, str]]:
    """Each process, its parent, and its state: Z for one that has ended."""
    proc = Path("/proc")
    if not (proc / "self" / "stat").exists():
        said = subprocess.run(["ps", "-axo", "pid=,ppid=,state="], capture_output=True, text=True, check=True).stdout
        return [(int(pid), int(parent), state[0]) for pid, parent, state in map(str.split, said.splitlines())]
    found = []
    for entry in proc.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # "pid (name) state parent …", and the name may hold anything.
                state, parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                found.append((int(entry.name), int(parent), state))
    return found


# --- the command --------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m verification.postgres", description="Run PostgreSQL.")
    parser.add_argument("--durable", action="store_true", help="wait for the disk at each commit")
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the data here (default: thrown away at the end)")
    parser.add_argument("--port", type=int, help="on 127.0.0.1 (default: one that is free)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help=f"run this, with the URL in {URL_VARIABLE}")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with LocalPostgres(options.data, durable=options.durable, port=options.port) as server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            command = options.command[1:] if options.command[:1] == ["--"] else options.command
            sys.exit(_run_with(server, command) if command else _serve(server))
    except KeyboardInterrupt:
        sys.exit(130)
    except HoldfastError as error:
        sys.exit(str(error))


def _serve(server: LocalPostgres) -> int:
    with suppress(KeyboardInterrupt):
        while server.is_running:
            time.sleep(0.2)
        sys.stderr.write(f"the server has ended by itself:\n{server.log}\n")
        return 1
    return 0


def _run_with(server: LocalPostgres, command: Sequence[str]) -> int:
    with subprocess.Popen(command, env={**os.environ, URL_VARIABLE: server.url}) as child:
        # Ctrl-C reaches the command as well: it decides when to end, and the server has to be there until then.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        with server.ends_with_us(child):
            code = child.wait()
        return code if code >= 0 else 128 - code  # killed by a signal: as a shell says it


if __name__ == "__main__":
    main()
