"""The statements that the pages on PostgreSQL tell people to run do run, on a database that has Holdfast's schema."""

import asyncio
import re
from pathlib import Path

import asyncpg
import pytest

import holdfast

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["how-to/run-on-postgresql.md", "explanation/scaling.md"]


def _statements(page):
    return re.findall(r"^```sql\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def migrated(postgres_url):
    async def migrate():
        async with holdfast.Engine(postgres_url):
            pass

    asyncio.run(migrate())
    return postgres_url


@pytest.mark.parametrize("page", PAGES)
def test_every_statement_of_the_page_runs(migrated, page):
    """Each is sent as it stands there; a name that is gone from the schema fails here first."""

    async def run_all():
        connection = await asyncpg.connect(migrated)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    statements = _statements(page)
    assert statements
    asyncio.run(run_all())
