"""The benchmarks run and report: what they measure is judged by people, not here."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from bench.catalogue import names
from bench.figures import Figure, line, percentile
from bench.model import Costs, Simulation
from bench.server import ask
from bench.table import table
from bench.wire import Wire

ROOT = Path(__file__).parents[2]

ON_BOTH = [
    "throughput",
    "steps",
    "signals",
    "promises",
    "broadcast",
    "events",
    "sleep",
    "fanout",
    "children",
    "recovery",
    "memory",
    "turn_cost",
    "query",
    "remote",
    "rest",
    "idle",
    "storage",
    "pages",
]
MEASURED = {
    "sqlite": [*ON_BOTH, "filters", "import", "virtual_time"],
    "postgres": [
        *ON_BOTH,
        "across",
        "nodes",
        "hints",
        "queues",
        "claims",
        "dead_rows",
        "growth",
        "partitions",
    ],
}
KEYS = {"name", "figure", "unit", "min", "max", "parameters", "yardstick", "ratio", "target", "met", "also", "machine"}


def _bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("store", MEASURED)
def test_list_names_every_benchmark(store):
    """`--list` names the yardsticks and all benchmarks of a store, a sentence each, and measures nothing."""
    done = _bench("--list", "--store", store)

    assert 0 == done.returncode, done.stderr
    assert ["commits", "python", *MEASURED[store]] == [text.split()[0] for text in done.stdout.splitlines()]
    assert all(text.rstrip().endswith((".", "?")) for text in done.stdout.splitlines())


def test_quick_run_gives_one_json_line_per_benchmark_with_every_key(tmp_path):
    """A run prints the yardsticks and the benchmark as JSON lines, then a table, and writes the same to the file."""
    report = tmp_path / "report.json"

    done = _bench("storage", "--quick", "--dir", str(tmp_path), "--json", str(report))

    assert 0 == done.returncode, done.stderr
    printed, _, shown = done.stdout.partition("\n\n")
    lines = [json.loads(text) for text in printed.splitlines()]
    assert ["commits", "python", "storage"] == [found["name"] for found in lines]
    assert all(found.keys() >= KEYS for found in lines)
    assert all(found["figure"] > 0 and isinstance(found["met"], bool) for found in lines)
    assert lines == json.loads(report.read_text("utf-8"))
    assert "storage: completed one-step workflow" in shown
    assert [report] == list(tmp_path.iterdir()), "databases were left behind"


def test_unknown_benchmark_is_refused_by_name():
    """A misspelt name ends the run before anything is measured, and the names there are get shown."""
    done = _bench("thruput")

    assert 2 == done.returncode
    assert "thruput" in done.stderr
    assert "throughput" in done.stderr


@pytest.mark.parametrize("store", MEASURED)
def test_catalogue_holds_yardsticks_first(store):
    """The yardsticks run before anything that is compared with them."""
    assert ("commits", "python", *MEASURED[store]) == names(store)


def test_benchmark_of_the_other_store_is_refused():
    """What measures PostgreSQL is not run on SQLite."""
    done = _bench("nodes")

    assert 2 == done.returncode
    assert "nodes on sqlite" in done.stderr


def test_unknown_store_is_refused_by_name(monkeypatch):
    """The variable that chooses the store is checked as the option is."""
    monkeypatch.setenv("HOLDFAST_BENCH_STORE", "oracle")

    done = _bench("--list")

    assert 2 == done.returncode
    assert "oracle" in done.stderr


def test_server_goes_with_postgres_only():
    """A server that is named and would not be used is a mistake."""
    assert 2 == _bench("--server", "postgresql://localhost/postgres").returncode


def test_quick_run_on_a_postgres_server_leaves_no_database(tmp_path, postgres_server, monkeypatch):
    """The variable chooses PostgreSQL; on a named server the databases are made, measured and dropped."""
    monkeypatch.setenv("HOLDFAST_BENCH_STORE", "postgres")
    before = ask(postgres_server.url, _databases)

    done = _bench("storage", "--quick", "--dir", str(tmp_path), "--server", postgres_server.url)

    assert 0 == done.returncode, done.stderr
    lines = [json.loads(text) for text in done.stdout.partition("\n\n")[0].splitlines()]
    assert ["commits", "python", "storage"] == [found["name"] for found in lines]
    assert all(found["figure"] > 0 and found["store"] == "postgres" for found in lines)
    assert before == ask(postgres_server.url, _databases)


async def _databases(connection):
    found = await connection.fetch("SELECT datname FROM pg_database WHERE datname LIKE 'holdfast_bench%'")
    return [row[0] for row in found]


def test_wire_counts_statements_and_round_trips(postgres_url):
    """A prepared statement is prepared in one round trip and executed in another; the proxy changes nothing."""

    async def counted():
        async with Wire(postgres_url) as wire:
            connection = await asyncpg.connect(wire.url)
            statement = await connection.prepare("SELECT $1::bigint")
            wire.reset()
            answers = [await statement.fetchval(number) for number in (1, 2, 3)]
            await connection.execute("BEGIN; COMMIT")
            traffic = wire.reset()
            await connection.close()
            return answers, traffic.statements, traffic.round_trips, traffic.parsed

    assert ([1, 2, 3], 4, 4, 0) == asyncio.run(counted())


def test_model_of_one_node_is_bound_by_its_processor():
    """With everything else free, a node does what its processor can, and two do twice that."""
    costs = Costs(
        node_us=250.0,
        server_us=0.0,
        transaction_us=0.0,
        round_trips=1.0,
        round_trip_us=10.0,
        flush_us=10.0,
        transactions=2,
    )

    one, two = (Simulation(costs, nodes=nodes, callers=100, cores=4).run(5_000).per_second for nodes in (1, 2))

    assert 4_000 == pytest.approx(one, rel=0.02)
    assert 8_000 == pytest.approx(two, rel=0.02)


def test_model_of_many_nodes_is_bound_by_the_server():
    """However many nodes there are, the server's processors do no more than they can."""
    costs = Costs(
        node_us=100.0,
        server_us=100.0,
        transaction_us=0.0,
        round_trips=1.0,
        round_trip_us=10.0,
        flush_us=10.0,
        transactions=1,
    )

    found = Simulation(costs, nodes=8, callers=100, cores=2).run(20_000)

    assert 20_000 == pytest.approx(found.per_second, rel=0.05)
    assert found.server > 0.95


@pytest.mark.parametrize(
    ("bounds", "met"),
    [
        ({}, None),
        ({"at_least": 10.0}, True),
        ({"at_least": 11.0}, False),
        ({"at_most": 10.0}, True),
        ({"at_most": 9.0}, False),
    ],
)
def test_target_is_judged_by_the_figure(bounds, met):
    """A figure on its bound meets it; without a target there is nothing to meet."""
    assert met is Figure(name="x", figure=10.0, unit="s", **bounds).met


def test_target_of_ratio_is_judged_within_each_repetition():
    """A slow machine slows figure and yardstick alike: the median of the ratios counts."""
    repetitions = [
        [Figure(name="x", figure=figure, unit="s", yardstick=yardstick, at_most=2.0, of_ratio=True)]
        for figure, yardstick in [(1.0, 1.0), (30.0, 10.0), (50.0, 40.0)]
    ]

    found = line("x", repetitions, {})

    assert (30.0, 1.25, True) == (found["figure"], found["ratio"], found["met"])


def test_line_misses_its_target_when_any_figure_does():
    """`met` at the top speaks for all figures of the benchmark."""
    good = Figure(name="good", figure=1.0, unit="s", at_most=2.0)
    bad = Figure(name="bad", figure=3.0, unit="s", at_most=2.0)

    found = line("x", [[good, bad]], {})

    assert found["met"] is False
    assert found["also"][0]["met"] is False


def test_table_shows_a_failed_benchmark_by_its_error():
    """A benchmark that broke appears in the table with the reason in place of figures."""
    broken = {"name": "idle", "error": "ended with code 1", "met": False, "also": []}

    assert "idle: ended with code 1" in table([broken])


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (99, 99), (100, 100), (1, 1)])
def test_percentile_is_the_value_that_so_many_do_not_exceed(percent, value):
    """Nearest rank: of 1..100, the n-th percentile is n."""
    assert value == percentile(list(range(1, 101)), percent)
