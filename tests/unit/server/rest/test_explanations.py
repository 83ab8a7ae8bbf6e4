"""Why something does not happen: over HTTP, and by a client at the other end."""

from __future__ import annotations

from holdfast import Client, Engine
from tests.conftest import QUICK, until
from tests.rest_server import EXECUTIONS, ORG, rest_server
from tests.unit.server.rest.conftest import WORKFLOWS
from tests.unit.server.rest.test_executions import is_waiting, start


async def test_an_execution_says_what_it_waits_for(api):
    """With a code for programs, a text for people, and the next step."""
    execution_id = await start(api, workflow_id="c 1")
    await until(lambda: is_waiting(api, execution_id))
    told = (await api.get(f"{EXECUTIONS}/{execution_id}/explanation")).json

    assert (execution_id, "WAITING") == (told["execution"]["workflow_execution_id"], told["execution"]["status"])
    [finding] = told["findings"]
    assert ("ok", "waits_for_signal") == (finding["level"], finding["code"])
    assert "'message'" in finding["text"]
    assert "holdfast workflow signal 'c 1' message --input JSON" in finding["next"]


async def test_nobody_has_the_code(database_url):
    """No worker is there; the queue is paused: each has its own code."""
    async with Engine(database_url, workflows=WORKFLOWS, config=QUICK):
        pass  # the kinds are known now, and nobody works
    async with Engine(database_url, config=QUICK) as idle, rest_server(idle) as api:
        execution_id = await start(api, "asks")
        path = f"{EXECUTIONS}/{execution_id}/explanation"
        alone = (await api.get(path)).json["findings"][0]
        await api.post(f"{ORG}/queues/default/pause", {"reason": "later"})
        paused = (await api.get(path)).json["findings"][0]
    assert ("bad", "no_worker") == (alone["level"], alone["code"])
    assert ("note", "queue_paused") == (paused["level"], paused["code"])
    assert "later" in paused["text"]


async def test_an_event_says_what_refused_it(api):
    """Every open wait of its key, with the part of its filter and the values it saw."""
    execution_id = await start(api, "listens")
    await until(lambda: is_waiting(api, execution_id))
    event_id = (await api.post(f"{ORG}/events", {"key": "order", "data": {"id": 8}})).json["event_id"]
    told = (await api.get(f"{ORG}/events/{event_id}/explanation")).json

    [considered] = told["waits"]
    assert (event_id, False) == (told["event"]["event_id"], told["more"])
    assert (execution_id, False) == (considered["wait"]["workflow_execution_id"], considered["satisfied"])
    assert "input.id == 7 was false: input.id is 8" == considered["reason"]
    [part] = considered["parts"]
    assert ("input.id == 7", "false") == (part["source"], part["outcome"])
    assert [{"name": "input.id", "value": "8"}] == part["facts"]
    assert 404 == (await api.get(f"{ORG}/events/{event_id + 1000}/explanation")).status


async def test_a_client_elsewhere_is_told_the_same(api, running):
    """The server looks, the client reads: both faces give equal answers."""
    handle = await running.client.start_workflow("chatbot-conversation", {}, workflow_id="w")
    await until(lambda: is_waiting(api, handle.id))
    event = await running.client.publish_event("order", {"id": 8})
    async with Client.connect(api.url) as remote:
        there = await remote.explain_workflow(handle.id)
        here = await handle.explain()
        assert [(f.level, f.code, f.next) for f in here.findings] == [(f.level, f.code, f.next) for f in there.findings]
        assert handle.id == there.workflow.workflow_execution_id
        assert "next: send it" in str(there)
        assert await running.client.explain_event(event.event_id) == await remote.explain_event(event.event_id)
