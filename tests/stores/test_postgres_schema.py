"""What PostgreSQL's own tables refuse and how they are keyed, after all migrations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from holdfast.config import StoreConfig
from holdfast.model.executions import NEVER
from holdfast.store.postgres.connections import Database
from tests.stores.query_plans import pages_touched
from verification.stores import Bench, OpenStore
from verification.stores.bench import START
from verification.stores.deletions import write_org
from verification.stores.records import ORG, an_id

PROMISE = (
    "INSERT INTO holdfast_promises (execution_id, name, org, promise_no, state, created_at, value, failure, "
    "settled_at, expires_at, shape) VALUES ('e', 'p', 'o', "
)
TOKEN = "INSERT INTO holdfast_tokens (token_hash, org, execution_id, promise, task_no, attempt) VALUES ('t', 'o', 'e', "
WAIT = (
    "INSERT INTO holdfast_subscriptions (id, execution_id, org, key, created_at, consume, wait_no, kind, promise) "
    "VALUES (1, 'e', 'o', 'k', 5, false, "
)
DELIVERY = (
    "INSERT INTO holdfast_deliveries (id, org, key, data, sent_at, consume, kept, kind, cursor, bound, delivered) "
    "VALUES (1, 'o', 'k', '1', 5, false, false, "
)
REFUSED = {
    "stuck without a reason": "UPDATE holdfast_executions SET state = 'STUCK'",
    "closed with a reason": "UPDATE holdfast_executions SET state = 'FAILED', closed_at = 5, stuck = '{}'",
    "continued by nobody": "UPDATE holdfast_executions SET state = 'CONTINUED', closed_at = 5",
    "open with a successor": "UPDATE holdfast_executions SET successor = 'x'",
    "stuck with a successor": "UPDATE holdfast_executions SET state = 'STUCK', stuck = '{}', successor = 'x'",
    "an unknown fate": ("UPDATE holdfast_executions SET parent_id = 'p', child_no = 1, on_parent_close = 'NONSENSE'"),
    "a child whose fate nobody knows": "UPDATE holdfast_executions SET parent_id = 'p', child_no = 1",
    "a child without a number": "UPDATE holdfast_executions SET parent_id = 'p', on_parent_close = 'cancel'",
    "a fate without a parent": "UPDATE holdfast_executions SET on_parent_close = 'cancel'",
    "a number without a parent": "UPDATE holdfast_executions SET child_no = 1",
    "running without an attempt": "UPDATE holdfast_tasks SET worker = 'w', started_at = 5",
    "running without a beginning": "UPDATE holdfast_tasks SET worker = 'w', attempt = 1",
    "begun by nobody": "UPDATE holdfast_tasks SET attempt = 1, started_at = 5",
    "deferred without an attempt": f"UPDATE holdfast_tasks SET deferred = true, not_before_at = {NEVER}",
    "deferred and up for claim": "UPDATE holdfast_tasks SET deferred = true, attempt = 1, started_at = 5",
    "less than no output": "UPDATE holdfast_tasks SET output_seq = -1",
    "output of no attempt": "INSERT INTO holdfast_task_output VALUES ('e', 1, 1, 0, 5, '1')",
    "rejected without a failure": PROMISE + "1, 'REJECTED', 5, 'null', NULL, 5, NULL, 'null')",
    "resolved with a failure": PROMISE + "1, 'RESOLVED', 5, 'null', '{}', 5, NULL, 'null')",
    "settled early for ever": PROMISE + "0, 'RESOLVED', 5, 'null', NULL, 5, NULL, 'null')",
    "pending before it is made": PROMISE + "0, 'PENDING', 5, 'null', NULL, NULL, 9, 'null')",
    "made and forgotten some day": PROMISE + "1, 'RESOLVED', 5, 'null', NULL, 5, 9, 'null')",
    "a token of a task and no attempt": TOKEN + "NULL, 1, NULL)",
    "a token of a promise and an attempt": TOKEN + "'p', NULL, 1)",
    "a wait without a number": WAIT + "0, 'event', NULL)",
    "a promise with the number of a wait": WAIT + "1, 'event', 'p')",
    "a promise that waits for a message": WAIT + "-1, 'message', 'p')",
    "an unknown delivery": DELIVERY + "'letter', 0, 0, 0)",
    "delivered to less than nobody": DELIVERY + "'event', 0, 0, -1)",
    "published to less than nobody": (
        "INSERT INTO holdfast_published (id, org, key, data, published_at, expires_at, created_before, consume, "
        "delivered) VALUES (1, 'o', 'k', '1', 5, 6, false, false, -1)"
    ),
}
TAKEN = {
    "stuck": "UPDATE holdfast_executions SET state = 'STUCK', stuck = '{}'",
    "taken up again": "UPDATE holdfast_executions SET stuck = '{}'",
    "continued": "UPDATE holdfast_executions SET state = 'CONTINUED', closed_at = 5, successor = 'x'",
    "reset after its end": "UPDATE holdfast_executions SET state = 'FAILED', closed_at = 5, successor = 'x'",
    "a child": "UPDATE holdfast_executions SET parent_id = 'p', child_no = 1, on_parent_close = 'default'",
    "running": "UPDATE holdfast_tasks SET worker = 'w', attempt = 1, started_at = 5",
    "running, its token given away": (
        "UPDATE holdfast_tasks SET worker = 'w', attempt = 1, started_at = 5, deferred = true"
    ),
    "deferred": (f"UPDATE holdfast_tasks SET attempt = 1, started_at = 5, deferred = true, not_before_at = {NEVER}"),
    "settled early": PROMISE + "0, 'REJECTED', 5, 'null', '{}', 5, 9, 'null')",
    "a promise that waits": WAIT + "-1, 'event', 'p')",
}
ENGINE_MADE = {
    # Ids of executions are made by the engine and begin with the time: everything an execution has is keyed by them.
    "holdfast_executions": ("id",),
    "holdfast_events": ("execution_id", "seq"),
    "holdfast_ready": ("execution_id",),
    "holdfast_tasks": ("execution_id", "task_no"),
    "holdfast_task_output": ("execution_id", "task_no", "seq"),
    "holdfast_timers": ("execution_id", "timer_no"),
    "holdfast_dead_letters": ("execution_id", "seq"),
    "holdfast_remains": ("execution_id",),
    # A name that a program has chosen, inside its own execution.
    "holdfast_promises": ("execution_id", "name"),
    # Numbers from a sequence.
    "holdfast_subscriptions": ("id",),
    "holdfast_published": ("id",),
    "holdfast_dead_events": ("id",),
    "holdfast_deliveries": ("id",),
    # Random, or hashes of what is.
    "holdfast_workers": ("id",),
    "holdfast_writers": ("id",),
    "holdfast_tokens": ("token_hash",),
    "holdfast_api_keys": ("id",),
    # Not of any org, or the org itself.
    "holdfast_topic_locks": ("id",),
    "holdfast_schema_version": ("version",),
    "holdfast_settings": ("name",),
    "holdfast_orgs": ("slug",),
}
"""Primary keys that do not begin with org, each with the reason why nobody's names can meet another org's in it."""


@asynccontextmanager
async def edited(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def schema(postgres_url: str) -> AsyncIterator[Any]:
    """A connection to a database with all tables."""
    await Database(postgres_url, StoreConfig(), lambda: 0).migrate()
    async with edited(postgres_url) as connection:
        yield connection


@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED)
async def test_rows_that_break_the_rules_are_refused(open_store: OpenStore, postgres_url: str, sql: str):
    """By the database itself, whoever writes them."""
    await write_org(await Bench.opened(open_store), ORG, 1)
    async with edited(postgres_url) as connection:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(sql)


@pytest.mark.parametrize("sql", TAKEN.values(), ids=TAKEN)
async def test_rows_that_keep_the_rules_are_taken(open_store: OpenStore, postgres_url: str, sql: str):
    """States next to those that are refused."""
    await write_org(await Bench.opened(open_store), ORG, 1)
    async with edited(postgres_url) as connection:
        await connection.execute(sql)


async def test_every_rule_holds_for_the_rows_that_were_there(schema: Any):
    """None is left that was only promised for the future."""
    assert [] == await schema.fetch("SELECT conname FROM pg_constraint WHERE NOT convalidated")


async def test_keys_over_names_that_callers_choose_begin_with_the_org(schema: Any):
    """So one org can neither meet nor guess another's. What does not begin with it is not chosen by callers."""
    keys = await schema.fetch(
        "SELECT i.indrelid::regclass::text AS name, i.indisprimary AS is_primary, array(SELECT a.attname::text "
        "FROM unnest(i.indkey) WITH ORDINALITY AS k (no, place) JOIN pg_attribute AS a "
        "ON a.attrelid = i.indrelid AND a.attnum = k.no ORDER BY k.place) AS columns "
        "FROM pg_index AS i WHERE i.indisunique AND i.indrelid::regclass::text LIKE 'holdfast%'"
    )
    others = {(key["name"], tuple(key["columns"])) for key in keys if key["columns"][:1] != ["org"]}
    assert {*ENGINE_MADE.items(), ("holdfast_api_keys", ("hash",))} == others
    tables = await schema.fetch("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'holdfast%'")
    assert {row[0] for row in tables} == {key["name"] for key in keys if key["is_primary"]}


async def test_a_page_of_what_is_over_does_not_pass_what_is_open(schema: Any):
    """Nor what was closed later: twenty thousand of each cost nothing."""
    insert = (
        "INSERT INTO holdfast_executions (id, org, workflow_id, kind, version, queue, priority, state, created_at, "
        "updated_at, closed_at, last_seq, seen_seq, call_seq, signal_count, open_tasks, open_timers, open_children, "
        "open_waits, epoch, nonce, crashes, close_rounds, cancel_requested, child_no) "
        "SELECT id, 'o', id, 'k', '1', 'q', 0, CASE WHEN closed_at IS NULL THEN 'OPEN' ELSE 'COMPLETED' END, "
        "$3::bigint, $3::bigint, closed_at, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0 "
        "FROM (SELECT lpad(to_hex(n), 12, '0') || $1::text AS id, $3::bigint + $4::bigint AS closed_at "
        "FROM generate_series(1, $2::integer) AS g (n)) AS heads"
    )
    await schema.execute(insert, "open", 20_000, START, None)
    await schema.execute(insert, "later", 20_000, START, 1_000_000)
    await schema.execute(insert, "over", 100, START, 0)
    await schema.execute("SET enable_seqscan = off")

    assert 60 > await pages_touched(schema, "deletions", "closed_page", 0, "", START + 1, 1_000)
    page = (START, an_id(1), START + 1, 1_000)
    assert 60 > await pages_touched(schema, "deletions", "closed_page", *page)
