"""The REST examples of the first source document, as written, with curl against a server in a process of its own."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")]

APP = """
import asyncio, signal, sys
from holdfast import Server, ServerConfig, WorkflowContext, workflow

@workflow(kind="chatbot-conversation")
async def conversation(ctx: WorkflowContext, given: dict) -> int:
    turns = 0
    while True:
        message = await ctx.wait_for_signal("message", dict)
        turns += 1
        if message["text"] == "bye":
            return turns

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Server(sys.argv[1], workflows=[conversation], server=ServerConfig(port=0, grpc_port=None)) as server:
        print(server.url, flush=True)
        await stop.wait()

asyncio.run(main())
"""

REQUEST = """{
  "workflow_id": "conversation:conv-123",
  "workflow_kind": "chatbot-conversation",
  "workflow_input": { "conversation_id": "conv-123", "user_id": "user-456" },
  "queue": "default",
  "signal_name": "message",
  "signal_value": { "text": "Hello!", "timestamp": 1706380800000 },
  "metadata": { "channel": "web" }
}"""


@pytest.fixture
def url(tmp_path: Path, database_url: str) -> Iterator[str]:
    app = tmp_path / "app.py"
    app.write_text(APP)
    server = subprocess.Popen([sys.executable, str(app), database_url], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    with server.stdout:
        yield server.stdout.readline().strip()
        server.send_signal(signal.SIGTERM)
        assert 0 == server.wait(30)


def curl(*given: str) -> str:
    done = subprocess.run(["curl", "-sS", "--max-time", "20", *given], check=True, capture_output=True, text=True)
    return done.stdout


def post(url: str, body: str) -> dict[str, object]:
    answer: dict[str, object] = json.loads(curl(url, "-H", "Content-Type: application/json", "-d", body))
    return answer


def test_signal_with_start_and_signal(url):
    """000-33 to 000-36: the request as it stands, the keys of the answer, the signal to the execution it names."""
    executions = f"{url}/api/orgs/default/workflow-executions"
    first = post(f"{executions}/signal-with-start", REQUEST)
    again = post(f"{executions}/signal-with-start", REQUEST)
    execution = first["workflow_execution_id"]
    bye = post(f"{executions}/{execution}/signal", '{"signal_name": "message", "signal_value": {"text": "bye"}}')
    result = json.loads(curl(f"{executions}/{execution}/result?wait=20"))
    streamed = curl("-N", f"{executions}/{execution}/events")

    assert ["workflow_execution_id", "workflow_created", "signal_event_sequence", "signal_delivered"] == list(first)[:4]
    assert (True, False) == (first["workflow_created"], again["workflow_created"])
    assert execution == again["workflow_execution_id"]
    assert bye["signal_delivered"]
    assert ("COMPLETED", 3) == (result["status"], result["result"])
    assert 3 == streamed.count("event: SIGNAL_RECEIVED")
    assert streamed.endswith("event: end\ndata: {}\n\n")


def test_both_are_in_the_description(url):
    """000-37."""
    paths = json.loads(curl(f"{url}/api/openapi.json"))["paths"]

    assert "/api/orgs/{org}/workflow-executions/signal-with-start" in paths
    assert "/api/orgs/{org}/workflow-executions/{workflow_execution_id}/signal" in paths


def test_broadcast(url):
    """001-40."""
    answer = post(f"{url}/api/orgs/default/signal", '{"SignalName": "approved"}')

    assert 0 == answer["DeliveredCount"]
