"""What is deployed, who works, what waits: over HTTP, of one org alone."""

from __future__ import annotations

from holdfast import Engine
from tests.conftest import QUICK, until
from tests.rest_server import ORG, rest_server
from tests.unit.server.rest.conftest import WORKFLOWS
from tests.unit.server.rest.test_executions import start


async def test_definitions_and_workers(api):
    definitions = (await api.get(f"{ORG}/definitions")).json["definitions"]
    workers = (await api.get(f"{ORG}/workers")).json["workers"]
    elsewhere = await api.get("/api/orgs/other/definitions")

    kinds = [definition["workflow_kind"] for definition in definitions]
    assert ["asks", "basket", "chatbot-conversation", "hears", "listens"] == kinds
    assert {"1"} == {definition["workflow_version"] for definition in definitions}
    assert 1 == len(workers)
    assert workers[0]["started_at"] < workers[0]["lease_until"]
    assert [] == elsewhere.json["definitions"]


async def test_what_waits_for_workers(database_url):
    """Executions with news that nobody can take are seen by queue, and in the list with queue and priority."""
    async with Engine(database_url, workflows=WORKFLOWS, config=QUICK):
        pass  # the kinds are known now, and nobody works
    async with Engine(database_url, config=QUICK) as idle, rest_server(idle) as api:
        for _ in range(3):
            await start(api, "asks", queue="slow", priority_seconds=7)

        async def queues():
            return (await api.get(f"{ORG}/queues")).json["queues"]

        found = await until(queues)
        pending = (await api.get(f"{ORG}/workflow-executions?status=PENDING&queue=slow")).json["items"]

    assert [("slow", 3, 0)] == [(queue["queue"], queue["turns"], queue["tasks"]) for queue in found]
    assert [("slow", 7)] * 3 == [(item["queue"], item["priority_seconds"]) for item in pending]
