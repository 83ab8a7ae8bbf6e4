"""Conversations: one workflow each, which waits for messages as long as it takes.

Run it: `python -m examples.chat`.

Whoever has a message does not ask whether the conversation exists: `signal_with_start_workflow` starts it or finds it,
and delivers the message, in one atomic step. Two first messages at the same moment meet in one conversation.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from holdfast import Client, Engine, RetryPolicy, WorkflowContext, task, workflow


@dataclass
class Message:
    text: str
    end: bool = False


@task(retry=RetryPolicy(max_attempts=5))
async def reply(text: str, number: int) -> str:
    """A task: any worker may run it, and it is tried again when it fails. A real one would ask a language model."""
    return f"message {number}: you said {text!r}"


@workflow(kind="chatbot-conversation")
async def conversation(ctx: WorkflowContext, name: str) -> int:
    """Answer messages one after another until one of them ends the conversation. The local variables are the memory."""
    ctx.logger.info("%s is here", name)
    answered = 0
    while True:
        message = await ctx.wait_for_signal("message", Message)
        await ctx.task(reply, message.text, answered + 1)
        answered += 1
        if message.end:
            return answered


async def say(client: Client, name: str, text: str, *, end: bool = False) -> str:
    """Deliver a message to somebody's conversation; the id of the execution that got it."""
    sent = await client.signal_with_start_workflow(
        f"conversation:{name}",
        conversation,
        name,
        signal_name="message",
        signal_value=Message(text, end),
    )
    return sent.workflow_execution_id


async def main() -> None:
    async with Engine("sqlite://", workflows=[conversation], tasks=[reply]) as engine:
        client = engine.client
        for name in ("ada", "bob", "eve"):
            await say(client, name, "hi")
        for name in ("ada", "bob", "eve"):
            execution_id = await say(client, name, "bye", end=True)
            print(name, "was answered", await client.workflow(execution_id).result(), "times")


if __name__ == "__main__":
    asyncio.run(main())
