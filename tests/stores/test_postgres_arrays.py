"""Arrays sent as text arrive as they were, whatever the texts hold."""

from __future__ import annotations

import random

import asyncpg
import pytest

from holdfast.store.postgres.arrays import Packing, literal
from holdfast.store.postgres.statements import columns, spelled_out


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], "{}"),
        ([7, 7, 7], "{7,7,7}"),
        ([1, None, -3], "{1,NULL,-3}"),
        (["a", "b"], '{"a","b"}'),
        (['say "x"', "back\\slash"], '{"say \\"x\\"","back\\\\slash"}'),
        (["a", None], '{"a",NULL}'),
        ([None, 1], "{NULL,1}"),
    ],
)
def test_a_list_is_written_as_postgresql_reads_it(values: list[object], expected: str) -> None:
    assert literal(values) == expected


async def test_what_is_sent_arrives(postgres_url: str) -> None:
    """Many lists of all kinds, each through the server and back."""
    rng = random.Random(7)
    alphabet = "ab ,{}\"\\'\n\té🐟"
    texts = [
        "",
        "NULL",
        "null",
        "\\x41",
        '\\"',
        *("".join(rng.choices(alphabet, k=rng.randrange(9))) for _ in range(300)),
    ]
    numbers = [0, -1, 2**63 - 1, -(2**63), *(rng.randrange(-(10**6), 10**6) for _ in range(100))]
    connection = await asyncpg.connect(postgres_url)
    try:
        packing = Packing(connection)
        for size in (0, 1, 2, 5, 40):
            for _ in range(20):
                some = rng.choices([*texts, None] if size == 5 else texts, k=size)
                few = rng.choices([*numbers, None] if size == 5 else numbers, k=size)
                row = await packing.fetchrow("SELECT $1::text[], $2::bigint[], $3::bigint", some, few, 9)
                assert (list(row[0]), list(row[1]), row[2]) == (some, few, 9)
    finally:
        await connection.close()


async def test_rows_arrive_whatever_their_columns_have_in_common(postgres_url: str) -> None:
    """`each`: packed, where equal values are sent once, and as a driver sends them. Equal rows stay as many as they
    are."""
    sql = spelled_out("SELECT * FROM each($1::text[], $2::text[], $3::bigint[], $4::_text) AS n (id, kind, seq, data)")
    rng = random.Random(7)
    connection = await asyncpg.connect(postgres_url)
    try:
        for size in (0, 1, 2, 3, 3, 3, 40):
            for kinds in ([""], ["a"], ["a", "b", 'c"\\']):
                rows = [
                    (rng.choice("xy"), rng.choice(kinds), rng.choice((0, 0, 9)), rng.choice("st")) for _ in range(size)
                ]
                for through in (Packing(connection), connection):
                    found = await through.fetch(sql, *columns(rows, 4))
                    assert [tuple(row) for row in found] == rows
    finally:
        await connection.close()


async def test_a_character_that_no_text_may_hold_is_refused_and_shifts_nothing(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        with pytest.raises(asyncpg.CharacterNotInRepertoireError):
            await Packing(connection).fetch("SELECT * FROM unnest($1::text[])", ["a\0b", "c"])
    finally:
        await connection.close()
