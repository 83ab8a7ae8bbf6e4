"""Promises and keys under random use: in whatever order things come, each promise has one settlement, and everybody is
told the same."""

import asyncio
import random
from collections import defaultdict

import pytest

from holdfast import PromiseState, WorkflowContext, workflow
from holdfast.contract.messages import PublishEvent
from holdfast.errors import ExecutionClosed, PromiseNotFound, PromiseTimeout, RequestMismatch, WaitFailed
from holdfast.model.payloads import encode

NAMES = ("a", "b", "c", "d")
TOKENS: dict[str, str] = {}


def note_token(promise_id: str, token: str) -> None:
    TOKENS[promise_id] = token


@workflow
async def asking(ctx: WorkflowContext, own: str) -> dict[str, object]:
    """Four promises, made one after another; each may be settled by an event, and times out by itself."""
    found: dict[str, object] = {}
    promises = []
    for number, name in enumerate(NAMES):
        await ctx.sleep(1)
        promise = ctx.promise(name, timeout=20 + 5 * number, event_key=f"{own}:{name}")
        await ctx.run(note_token, promise.id, promise.token)
        promises.append((name, promise))
    for name, promise in promises:
        try:
            found[name] = await promise
        except PromiseTimeout:
            found[name] = "timed out"
        except WaitFailed as error:
            found[name] = f"rejected {error.details['failure'].message}"
    return found


class Caller:
    """Makes random calls, and notes what each was answered."""

    def __init__(self, env, handles, chance):
        self.env = env
        self.handles = handles
        self.chance = chance
        self.answers = defaultdict(list)

    async def call(self, number):
        chance, client = self.chance, self.env.client
        place = chance.randrange(len(self.handles))
        handle, name = self.handles[place], chance.choice(NAMES)
        promise_id = f"{handle.id}:{name}"
        key = chance.choice([None, None, f"own-{number}", f"{promise_id}-key"])
        value = "shared" if key is not None and key.endswith("-key") else number
        way = chance.choice(["id", "name", "token", "reject", "early", "event"])
        # One that is kept for a promise to come is kept long enough.
        options = {
            "idempotency_key": key,
            "idempotency_key_ttl": None if way == "early" else chance.choice([None, 3.0]),
        }
        try:
            match way:
                case "id":
                    answer = await client.resolve_promise(promise_id, value, **options)
                case "name":
                    answer = await client.resolve_promise_by_name(f"w-{place}", name, value, **options)
                case "token":
                    answer = await client.complete_promise(TOKENS.get(promise_id, "ct_none"), value, **options)
                case "reject":
                    answer = await client.reject_promise(promise_id, str(value), **options)
                case "early":
                    answer = await client.resolve_promise(promise_id, value, allow_early=True, **options)
                case "event":
                    data = encode(value, field="data")
                    await client.api.call(PublishEvent(org="default", key=f"w-{place}:{name}", data=data))
                    return
        except (PromiseNotFound, ExecutionClosed, RequestMismatch):
            return
        self.answers[promise_id].append(answer)


@pytest.mark.parametrize("seed", range(12))
async def test_one_settlement_each_and_one_answer_for_all(environment, seed):
    """F2A, F2B, F59, 003-23: what was answered and stored, what the history tells and what the workflow got agree."""
    TOKENS.clear()
    chance = random.Random(seed)
    env = await environment(workflows=[asking], replay_always=seed % 3 == 0)
    handles = [await env.client.start_workflow(asking, f"w-{n}", workflow_id=f"w-{n}") for n in range(3)]
    caller = Caller(env, handles, chance)
    number = 0
    for _ in range(12):
        calls = chance.randrange(1, 9)
        await asyncio.gather(*(caller.call(number + nth) for nth in range(calls)))
        number += calls
        await env.advance(seconds=chance.choice([0, 0.5, 1, 3, 10]))
    await env.advance(seconds=60)
    for handle in handles:
        await check(env, handle, caller.answers)


async def check(env, handle, answers):
    result = await handle.result()
    history = await handle.history()
    for promise in await handle.promises():
        told = [
            event
            for event in history
            if event.type in {"PROMISE_RESOLVED", "PROMISE_REJECTED", "PROMISE_TIMED_OUT"}
            and event.body.name == promise.name
        ]
        assert 1 == len(told), promise
        expected = {
            PromiseState.RESOLVED: promise.value,
            PromiseState.REJECTED: f"rejected {promise.failure.message if promise.failure else ''}",
            PromiseState.TIMED_OUT: "timed out",
        }[promise.state]
        assert expected == result[promise.name]
        given = answers[promise.id]
        firsts = [answer for answer in given if not answer.already_resolved and not repeated(answer)]
        assert len(firsts) <= 1
        for answer in given:
            assert (promise.state, promise.value, promise.failure) == (answer.state, answer.value, answer.failure)
        again = await env.client.resolve_promise(promise.id, "much later")
        assert (True, promise.state, promise.value) == (again.already_resolved, again.state, again.value)
    assert [] == await handle.waits()


def repeated(answer):
    return answer.idempotency_key_used and not answer.idempotency_key_new
