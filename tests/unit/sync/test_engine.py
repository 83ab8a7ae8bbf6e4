"""`SyncEngine`: an engine for programs without an event loop, and its end however the program ends."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from holdfast import SyncEngine, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.errors import EngineStopped, HoldfastError, InvalidDatabaseUrl, InvalidDefinition, WouldDeadlock
from tests.conftest import PATIENCE_S, QUICK

ROOT = Path(__file__).parents[3]


@workflow
async def double(ctx: WorkflowContext, number: int) -> int:
    return 2 * number


@workflow
async def waits(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("word", str)


@pytest.fixture
def url(database_url):
    return database_url


@pytest.fixture
def engine(url):
    with SyncEngine(url, workflows=[double, waits], config=QUICK) as running:
        yield running


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "holdfast-engine"]


def test_client_and_short_forms(engine):
    """Everything a script needs, without a loop in sight."""
    assert 6 == engine.client.start_workflow(double, 3).result(timeout=10)

    execution_id = engine.start(waits, workflow_id="one")
    assert None is engine.query_result(execution_id)
    assert engine.query_status(execution_id).is_open
    assert 1 == engine.recover().open_executions
    assert engine.cancel(execution_id)
    assert not engine.cancel("nothing")
    with pytest.raises(HoldfastError, match="cancelled"):
        engine.client.workflow(execution_id).result(timeout=10)
    assert WorkflowStatus.CANCELLED is engine.query_status(execution_id)
    assert None is engine.query_status("nothing")


def test_thread_is_there_while_the_engine_runs(url):
    """One thread, however often it is started; none when it is shut down, however often."""
    engine = SyncEngine(url, workflows=[double], config=QUICK)
    assert ([], "SyncEngine(not running)") == (threads(), repr(engine))

    engine.open()
    engine.open()
    assert (["holdfast-engine"], "SyncEngine(running)") == (threads(), repr(engine))

    engine.shutdown()
    engine.shutdown()
    assert [] == threads()
    with pytest.raises(EngineStopped):
        engine.client.count_workflows()


def test_started_again(url):
    """What was written before is there; what was waiting goes on."""
    engine = SyncEngine(url, workflows=[waits], config=QUICK)
    with engine:
        started = engine.start(waits)
    with engine:
        handle = engine.client.workflow(started)
        handle.signal("word", "again")

        assert "again" == handle.result(timeout=10)


def test_shut_down_when_the_block_fails(url):
    """The error goes on, the thread is gone."""
    with pytest.raises(KeyError), SyncEngine(url, config=QUICK):
        raise KeyError

    assert [] == threads()


def test_what_can_not_work_is_refused_at_once():
    """Before any thread is started."""
    with pytest.raises(InvalidDatabaseUrl):
        SyncEngine("mysql://here")
    with pytest.raises(InvalidDefinition):
        SyncEngine("sqlite://", workflows=[print])


@pytest.mark.sqlite_only("a folder that is missing, and can be made")
def test_start_that_fails(tmp_path):
    """The caller of open gets the reason; no thread is left, and it may try again."""
    engine = SyncEngine(f"sqlite:///{tmp_path}/missing/app.db")

    with pytest.raises(HoldfastError, match="missing"):
        engine.open()

    assert [] == threads()
    (tmp_path / "missing").mkdir()
    with engine:
        assert 0 == sum(engine.client.count_workflows().values())


def test_shutdown_on_the_thread_of_the_loop(url):
    """It would wait for itself."""

    @task
    async def shuts_down() -> str:
        try:
            running.shutdown()
        except WouldDeadlock as error:
            return error.code
        return "?"

    @workflow
    async def asks(ctx: WorkflowContext) -> str:
        return await ctx.task(shuts_down)

    with SyncEngine(url, workflows=[asks], tasks=[shuts_down], config=QUICK) as running:
        assert "would_deadlock" == running.client.start_workflow(asks).result(timeout=10)
        assert ["holdfast-engine"] == threads()
    assert [] == threads()


def test_ctrl_c_interrupts_and_cancels_the_wait(engine):
    """KeyboardInterrupt at once, nobody waits on the loop any more, and the engine goes on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # known, whatever ran before in this process
    handle = engine.client.start_workflow(waits)
    outcomes = engine._wrapped._local.result_waiters
    main = threading.get_ident()

    def interrupt() -> None:
        while not outcomes.awaited:
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        handle.result(timeout=PATIENCE_S)
    thread.join()

    handle.status()  # an answer from the loop, after the cancel was sent there
    assert [] == outcomes.awaited
    assert handle.status().is_open


def test_ctrl_c_before_the_wait_has_begun_cancels_the_call_too(engine, monkeypatch):
    """The question is on its way, and the caller has not yet begun to wait for the answer."""
    handle = engine.client.start_workflow(waits)
    outcomes = engine._wrapped._local.result_waiters
    loop = engine._wrapped._local.loop
    ask = loop.call_soon_threadsafe

    def interrupted(callback, *args, **options):
        ask(callback, *args, **options)
        if threading.current_thread() is not threading.main_thread():
            return
        monkeypatch.undo()
        while not outcomes.awaited:
            time.sleep(0.001)
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        handle.result(timeout=PATIENCE_S)

    handle.status()
    assert [] == outcomes.awaited


# --- the end of a process -----------------------------------------------------------------------------------------

OPENING = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in a shell's background is deaf to it
from holdfast import *
from holdfast.errors import *

begun = threading.Event()

@task
def slow(context: TaskContext) -> str:
    begun.set()
    os.write(1, b"begun\\n")  # whole lines: print writes the end of a line by itself, and another thread may be faster
    time.sleep(0.3)
    return "done"

@workflow
async def works(ctx: WorkflowContext) -> str:
    return await ctx.task(slow)

@workflow
async def waits(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("word", str)

engine = SyncEngine(sys.argv[1], workflows=[works, waits], tasks=[slow])
"""


def process(url: str, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", OPENING + textwrap.dedent(code), url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def output(started: subprocess.Popen[str], code: int = 0) -> list[str]:
    out, err = started.communicate(timeout=2 * PATIENCE_S)
    assert code == started.returncode, err
    return out.split()


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "code"), [("", 0), ("raise KeyError", 1), ("sys.exit(3)", 3)])
def test_process_that_never_shuts_down_ends_in_order(url, ending, code):
    """The task under way is finished and recorded, and the process ends by itself."""
    lines = output(
        process(
            url,
            f"""
            engine.open()
            started = engine.start(works)
            begun.wait()
            os.write(1, f"{{started}}\\n".encode())
            {ending}
            """,
        ),
        code,
    )

    started = next(line for line in lines if line != "begun")
    with SyncEngine(url) as engine:
        types = [event.type for event in engine.client.history(started)]
    assert "TASK_COMPLETED" in types


@pytest.mark.slow
def test_ctrl_c_in_a_script(url):
    """The wait ends, the block is left, the engine is shut down: nothing hangs."""
    script = process(
        url,
        """
        try:
            with engine:
                handle = engine.client.start_workflow(waits)
                print("waiting", flush=True)
                handle.result()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """,
    )
    assert script.stdout is not None
    assert "waiting" == script.stdout.readline().strip()
    script.send_signal(signal.SIGINT)

    assert ["interrupted"] == output(script)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child(url):
    """As under gunicorn --preload: a clear error for every use, and an end that hurts nobody."""
    lines = output(
        process(
            url,
            """
            import warnings
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, from Python 3.12 on
            engine.open()
            first = engine.start(waits)
            if os.fork() == 0:
                for use in (engine.client.count_workflows, engine.open, SyncEngine(sys.argv[1]).open):
                    try:
                        use()
                    except EngineForked as error:
                        print(error.code, "post_fork" in str(error), flush=True)
                engine.shutdown()
                sys.exit(0)  # the usual end, atexit and all
            os.wait()
            engine.client.workflow(first).signal("word", "parent")
            print(engine.client.workflow(first).result(timeout=20), flush=True)
            engine.shutdown()
            """,
        )
    )

    assert ["engine_forked", "True"] * 3 + ["parent"] == lines


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_that_leaves_the_engine_alone(url):
    """It ends like any process; the parent's engine runs on."""
    lines = output(
        process(
            url,
            """
            import warnings
            warnings.simplefilter("ignore", DeprecationWarning)
            engine.open()
            if os.fork() == 0:
                sys.exit(5)
            print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
            print(sum(engine.client.count_workflows().values()), flush=True)
            """,
        )
    )

    assert ["5", "0"] == lines


@pytest.mark.slow
def test_made_before_the_fork_and_started_after(url):
    """The way to do it in a module: the object may be there at import, its thread must not."""
    lines = output(
        process(
            url,
            """
            with engine:
                pass  # shut down before the fork: it left nothing open
            if os.fork() == 0:
                with engine:
                    print(engine.client.start_workflow(works).result(timeout=20), flush=True)
                sys.exit(0)
            os.wait()
            """,
        )
    )

    assert ["begun", "done"] == lines


def test_context_is_not_needed_to_read_a_file_of_another(url):
    """An engine without workflows asks and runs nothing."""
    with SyncEngine(url, workflows=[waits], config=QUICK) as working, SyncEngine(url, config=QUICK) as asking:
        started = working.start(waits)

        assert asking.client.workflow(started).status().is_open
