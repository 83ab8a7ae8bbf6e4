"""Events and waits in any order: none is missed, none comes twice, and `consume_on_read` holds in both modes.

Random operations, several of them in one transaction, transactions that are rolled back and repeated, caches that are
lost: after each the engine must have done what the plain model says. When a delivery takes several pages others get in
between, so that there is more than one right outcome: then laws are checked instead.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from msgspec import Raw

from holdfast.config import EngineConfig, Limits
from holdfast.contract.executions import TerminateExecution
from holdfast.contract.messages import PublishEvent, RemoveEvent, ReplayDeadEvent
from holdfast.contract.workers import TurnAnswer, TurnVerdict
from holdfast.engine.executions.terminate import Terminate
from holdfast.engine.messages import matching
from holdfast.engine.messages.dead_events import Remove, ReplayDead
from holdfast.engine.messages.publish import Publish
from holdfast.engine.rules import messages
from holdfast.engine.upkeep import run_due
from holdfast.engine.upkeep.prune import Prune
from holdfast.engine.upkeep.run_due import RunDue
from holdfast.model import commands as c
from holdfast.model.messages import DeadEvent
from holdfast.model.values import DeliveryMode
from tests.replay.event_model import FILTERS, PAYLOADS, Model, Waiting
from tests.replay.event_world import ORG, World

KEYS = ("a", "b")
LIMIT = 4
FEW = range(150)
MANY = [pytest.param(range(first, first + 500), marks=pytest.mark.slow) for first in range(0, 2_000, 500)]


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


class Story:
    """One random sequence, told to the engine and to the model. Everything is drawn before it is run, so that a
    repeated transaction repeats it exactly."""

    def __init__(self, seed: int, *, paged: bool = False) -> None:
        self.paged = paged
        # In pages: many waits that want the same.
        self.keys = KEYS[:1] if paged else KEYS
        self.filters = [None, "input.v > 5", "input.k == 1"] if paged else list(FILTERS)
        self.chance = random.Random(seed)
        self.world = World(EngineConfig(limits=Limits(events_per_key=LIMIT), event_retention_s=100.0))
        self.model = Model(LIMIT, self.world.now)
        self.published: dict[int, tuple[str, Any, dict[str, Any]]] = {}
        self.waits: dict[tuple[str, int], Waiting] = {}
        self.cancelled: set[tuple[str, int]] = set()
        self._wait_no = 0

    # --- what can happen: each gives an operation, and what the model makes of it ---

    def publishing(self) -> tuple[str, Any, dict[str, Any]]:
        chance = self.chance
        how = {
            "delivery": chance.choice(["waiters", *["waiters_and_future"] * 3, "created_before"]),
            "consume": chance.random() < 0.4,
            "expire_after_s": chance.choice([2.0, 100.0]),
        }
        return chance.choice(self.keys), chance.choice(PAYLOADS), how

    def publish(self):
        key, data, how = self.publishing()
        request = PublishEvent(
            org=ORG,
            key=key,
            data=raw(data),
            delivery=DeliveryMode(how["delivery"]),
            consume=how["consume"],
            expire_after_s=how["expire_after_s"],
        )

        def tell() -> None:
            number = self.model.number()
            self.published[number] = (key, data, how)
            self.model.publish(number, key, data, how)

        return Publish(request), tell

    def turn(self):
        """A turn with some commands: new waits, given up ones, events of its own, perhaps the end."""
        chance, model = self.chance, self.model
        execution = chance.choice(list(model.open))
        born = model.open[execution]
        commands: list[c.Command] = []
        told: list[tuple[str, Any]] = []
        mine = [no for owner, no in self.waits if owner == execution]
        for _ in range(chance.randint(1, 5 if self.paged else 3)):
            what = chance.random()
            if what < 0.6:
                self._wait_no += 1
                wait = Waiting(
                    0,
                    execution,
                    self._wait_no,
                    chance.choice(self.keys),
                    chance.choice(self.filters),
                    chance.random() < 0.3,
                    chance.choice([None, 0, 0, max(model.now - 2_000_000, 0)]),
                    chance.choice([0, 0, max(model.last - 2, 0)]),
                    born,
                )
                mine.append(wait.no)
                commands.append(
                    c.StartWait(
                        wait_no=wait.no,
                        kind="event",
                        key=wait.key,
                        where=wait.where,
                        since_at=wait.since_at,
                        after_event_id=wait.after,
                        consume=wait.consume,
                        born=born,
                    )
                )
                told.append(("wait", wait))
            elif what < 0.8 and mine:
                no = chance.choice(mine)
                commands.append(c.CancelWait(wait_no=no))
                told.append(("cancel", no))
            else:
                key, data, how = self.publishing()
                commands.append(
                    c.Publish(
                        key=key,
                        data=raw(data),
                        delivery=how["delivery"],
                        consume=how["consume"],
                        expire_after_s=how["expire_after_s"],
                    )
                )
                told.append(("publish", (key, data, how)))
        if chance.random() < 0.08:
            commands.append(c.CompleteWorkflow())
            told.append(("close", None))
        operation = self.world.turn(execution, *commands)
        return operation, lambda: self._tell_turn(execution, told)

    def _tell_turn(self, execution: str, told: list[tuple[str, Any]]) -> None:
        model = self.model
        if execution not in model.open:
            return
        begun: list[Waiting] = []
        sent: list[tuple[int, Any]] = []
        for what, item in told:
            if what == "wait":
                item.id = model.number()
                self.waits[execution, item.no] = item
                model.wait(item)
                begun.append(item)
            elif what == "cancel":
                self.cancelled.add((execution, item))
                model.cancel(execution, item)
            elif what == "publish":
                number = model.number()
                self.published[number] = item
                sent.append((number, item))
            else:
                model.close(execution)
        for wait in begun:
            model.look_back(wait)
        for number, item in sent:
            model.publish(number, *item)

    def terminate(self):
        execution = self.chance.choice(list(self.model.open))
        request = TerminateExecution(org=ORG, workflow_execution_id=execution)
        return Terminate(request), lambda: self.model.close(execution)

    def forget(self):
        return Prune(None), self.model.expire

    def remove(self):
        number = self.chance.choice([*self.model.kept, *self.model.dead, 999_999])

        def tell() -> None:
            self.model.kept.pop(number, None) or self.model.dead.pop(number, None)

        return Remove(RemoveEvent(org=ORG, event_id=number)), tell

    def replay(self):
        event = self.chance.choice(list(self.model.dead.values()))
        dead = DeadEvent(
            id=event.id,
            org=ORG,
            key=event.key,
            data=raw(event.data),
            published_at=event.published_at,
            reason="",
            at=0,
        )

        def tell() -> None:
            if self.model.dead.pop(event.id, None) is None:
                return
            how = {"delivery": "waiters_and_future", "consume": False, "expire_after_s": 100.0}
            number = self.model.number()
            self.published[number] = (event.key, event.data, how)
            self.model.publish(number, event.key, event.data, how)

        return ReplayDead(ReplayDeadEvent(org=ORG, event_id=event.id), dead), tell

    def next_pages(self):
        return RunDue(None), lambda: None

    # --- telling it ---

    def begin(self) -> None:
        execution = self.world.start()
        self.model.open[execution] = self.model.last

    def step(self) -> None:
        chance = self.chance
        self.world.now += chance.choice([0, 0, 1, 1_500_000])
        self.model.now = self.world.now
        if not self.model.open or chance.random() < 0.15:
            self.begin()
        steps = [self.publish] * 5 + [self.turn] * 6 + [self.forget, self.terminate]
        if self.paged:
            steps += [self.next_pages] * 4
        else:
            steps += [self.remove] + [self.replay] * (2 if self.model.dead else 0)
        drawn = [chance.choice(steps)() for _ in range(chance.choice([1, 1, 2, 4]))]
        answers = self.world.run([operation for operation, _ in drawn], tries=chance.choice([1, 1, 1, 2, 3]))
        for answer in answers:
            if isinstance(answer, BaseException) and type(answer).__name__ not in {"StaleClaim", "EventNotFound"}:
                raise answer
        for (_, tell), answer in zip(drawn, answers, strict=True):
            # A turn that ends the workflow is sent back while there is an event that it has not seen.
            if not isinstance(answer, TurnAnswer) or answer.verdict is TurnVerdict.RECORDED:
                tell()
        if chance.random() < 0.1:
            self.world.forget_caches()

    def compare(self) -> None:
        world, model = self.world, self.model
        received = [(each.execution_id, each.wait_no, each.event_id) for each in world.received]
        assert model.received == received
        kept = world.rows("SELECT id, delivered FROM holdfast_published ORDER BY id")
        assert [(event.id, event.delivered) for event in model.kept.values()] == kept
        waits = world.rows("SELECT id, execution_id, wait_no FROM holdfast_subscriptions ORDER BY id")
        expected = sorted((wait.id, wait.execution, wait.no) for wait in model.waits.values())
        assert expected == waits
        assert sorted(model.dead) == [
            number for (number,) in world.rows("SELECT id FROM holdfast_dead_events ORDER BY id")
        ]
        counted = Counter(event.key for event in model.kept.values())
        for key, retained, dropped in world.rows("SELECT key, retained, dropped FROM holdfast_event_keys"):
            assert (counted[key], model.dropped[key]) == (retained, dropped)


@pytest.mark.parametrize("seeds", [FEW, *MANY], ids=str)
def test_every_order_of_publishing_waiting_giving_up_and_expiring_is_that_of_the_model(seeds):
    """004-22, 004-23, 004-24, H25: thousands of random sequences. The message of a failure names the seed."""
    for seed in seeds:
        story = Story(seed)
        for number in range(story.chance.randint(5, 14)):
            story.step()
            try:
                story.compare()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, step {number}: {error}") from error


# --- deliveries in pages ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(messages, "PAGE", 2)
    monkeypatch.setattr(matching, "PAGE", 2)
    monkeypatch.setattr(run_due, "PAGE", 2)


def under_way(world: World) -> int:
    return world.rows("SELECT count(*) FROM holdfast_deliveries WHERE done_at IS NULL")[0][0]


def check_laws(story: Story) -> None:
    world = story.world
    per_wait = Counter((each.execution_id, each.wait_no) for each in world.received)
    assert set(per_wait.values()) <= {1}, "a wait has got two events"
    used_up: dict[int, Waiting] = {}
    takers = Counter(each.event_id for each in world.received)
    for each in world.received:
        key, data, how = story.published[each.event_id]
        wait = story.waits[each.execution_id, each.wait_no]
        assert key == wait.key, "an event of another key"
        assert FILTERS[wait.where](data), "an event that the filter refuses"
        assert each.event_id not in used_up, "an event that another one has used up"
        assert each.event_id > wait.id or wait.since_at is not None, "an event of the past"
        if how["consume"] or wait.consume:
            used_up[each.event_id] = wait
    for number, (_, _, how) in story.published.items():
        assert takers[number] <= 1 or not how["consume"], "an event that only one may have"
    for each in world.received:
        wait = story.waits[each.execution_id, each.wait_no]
        for number, (key, data, _) in story.published.items():
            if wait.id < number < each.event_id and key == wait.key and FILTERS[wait.where](data):
                assert number in used_up, f"event {each.event_id} has overtaken {number} on the way to wait {wait.id}"
    if under_way(world):
        return
    open_waits = world.rows("SELECT execution_id, wait_no FROM holdfast_subscriptions")
    kept = {number for (number,) in world.rows(f"SELECT id FROM holdfast_published WHERE expires_at > {world.now}")}
    for execution, no in open_waits:
        wait = story.waits[execution, no]
        for number, (key, data, how) in story.published.items():
            if key != wait.key or not FILTERS[wait.where](data):
                continue
            if number in used_up:
                taker = used_up[number]
                assert not wait.id < min(number, taker.id), f"wait {taker.id} was given {number} before wait {wait.id}"
                continue
            assert number < wait.id, f"wait {wait.id} has missed event {number}"
            seen = (
                wait.since_at == 0
                and number > wait.after
                and (how["delivery"] != "created_before" or number > wait.born)
            )
            assert not (seen and number in kept), f"wait {wait.id} has not found event {number}"


def go_on(story: Story, rounds: int) -> None:
    for _ in range(rounds):
        if not under_way(story.world):
            return
        story.world.run([RunDue(None)], tries=story.chance.choice([1, 2]))


@pytest.mark.parametrize("seeds", [FEW, *MANY[:2]], ids=str)
def test_deliveries_in_pages_miss_nothing_and_give_nothing_twice(small_pages, seeds):
    """With pages of two, publishing, waiting, giving up, expiring and closing get in between the pages."""
    paged = 0
    for seed in seeds:
        story = Story(1_000_000 + seed, paged=True)
        try:
            for _ in range(story.chance.randint(5, 14)):
                story.step()
                paged += bool(under_way(story.world))
                check_laws(story)
                go_on(story, story.chance.choice([0, 1, 100]))
                check_laws(story)
            go_on(story, 500)
            assert not under_way(story.world), "a delivery never ends"
            check_laws(story)
        except AssertionError as error:
            raise AssertionError(f"seed {1_000_000 + seed}: {error}") from error
    assert paged > len(seeds) / 2, "hardly any delivery took more than a page"
