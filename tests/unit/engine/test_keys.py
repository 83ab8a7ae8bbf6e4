"""API keys, orgs and the record of acts, from the contract to the database."""

import asyncio
import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.contract.keys import (
    CloseOrg,
    CreatedKey,
    CreateKey,
    CreateOrg,
    KeyState,
    Principal,
    RecordAuditEntry,
    RevokeKey,
    RotateKey,
)
from holdfast.engine.key_facade import LocalKeys
from holdfast.engine.keys.create import Create
from holdfast.errors import (
    Forbidden,
    InvalidDuration,
    InvalidRequest,
    KeyEnded,
    KeyNotFound,
    OrgClosed,
    OrgNotFound,
    StorageBusy,
    Unauthenticated,
)
from holdfast.model.api_key_text import hash_key
from holdfast.model.keys import Role
from tests.conftest import until
from tests.database_access import change, dump

SECOND = 1_000_000
START = 1_800_000_000 * SECOND
PAIRS = list(itertools.product(Role, Role))
INCLUDED = {
    Role.ADMIN: {Role.ADMIN, Role.WRITER, Role.READER, Role.WORKER},
    Role.WRITER: {Role.WRITER, Role.READER},
    Role.READER: {Role.READER},
    Role.WORKER: {Role.WORKER},
}


class SetClock:
    """Store time and the age of remembered answers, both set by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / SECOND

    def advance(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
async def node(engine, clock):
    """Opens nodes of one installation: the keys of each."""

    async def open_node() -> LocalKeys:
        opened = await engine(clock=clock)
        return LocalKeys(opened._local, clock=clock.monotonic)

    return open_node


@pytest.fixture
async def keys(node):
    return await node()


def digest(made: CreatedKey) -> str:
    found = hash_key(made.text)
    assert found is not None
    return found


async def make(keys: LocalKeys, role: Role = Role.ADMIN, org: str = "acme", **fields: Any) -> CreatedKey:
    return await keys.create(CreateKey(**({"org": org, "name": f"a {role}", "role": role} | fields)))


async def log_in(keys: LocalKeys, made: CreatedKey) -> Principal:
    return await keys.authenticate(digest(made))


# --- roles ---


@pytest.mark.parametrize(("role", "other"), PAIRS)
def test_role_lattice(role, other):
    """Admin over all, writer over reader; a worker is neither above nor below them."""
    assert role.allows(other) is (other in INCLUDED[role])


# --- making and using ---


async def test_a_key_opens_its_org_with_its_role(keys):
    """And only that text does."""
    made = await make(keys, Role.WORKER)
    assert await log_in(keys, made) == Principal("acme", Role.WORKER, made.key.id, digest(made))
    assert made.key == replace(made.key, org="acme", role=Role.WORKER, state=KeyState.ACTIVE, hint=made.text[:7])


async def test_keys_differ(keys):
    """Each has a secret of its own; the ids grow."""
    made = [await make(keys) for _ in range(3)]
    assert len({one.text for one in made}) == 3
    assert [key.id for key in await keys.list("acme")] == sorted((one.key.id for one in made), reverse=True)


async def test_keys_made_at_once_all_count(keys):
    """Although they are decided in one transaction, at the same microsecond."""
    made = await asyncio.gather(*(make(keys, org=f"org{n % 3}") for n in range(30)))
    assert {(await log_in(keys, one)).key_id for one in made} == {one.key.id for one in made}
    assert len({one.key.id for one in made}) == 30
    assert [(await keys.verify_audit(f"org{n}")).is_whole for n in range(3)] == [True] * 3


@pytest.mark.parametrize(
    "wrong", ["", "0" * 64, "x" * 64, "A" * 64, "\0" * 64, "é" * 64, "0" * 65_536, None, 7, b"0" * 64]
)
async def test_what_opens_nothing_is_always_the_same_error(keys, wrong):
    """Not a word about why."""
    await make(keys)
    with pytest.raises(Unauthenticated) as refused:
        await keys.authenticate(wrong)
    assert (refused.value.message, refused.value.details) == (Unauthenticated().message, {})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("org", ""),
        ("org", "a/b"),
        ("org", "."),
        (
            "org",
            "..",
        ),
        ("org", "a" * 64),
        ("org", "a\0"),
        ("org", "ü"),
        ("org", 7),
        ("name", ""),
        ("name", "x" * 256),
        ("name", "a\nb"),
        ("name", None),
        ("role", "owner"),
        ("role", "admin"),
        ("role", None),
    ],
)
async def test_a_key_that_can_not_be_is_refused(keys, field, value):
    """With the field's name; nothing is made, no org either."""
    with pytest.raises(InvalidRequest) as refused:
        await make(keys, **{field: value})
    assert refused.value.field == field
    assert await keys.any() is False
    assert await keys.orgs() == []


@pytest.mark.parametrize("duration", [0, -1, float("nan"), 1e12])
async def test_a_life_that_can_not_be_is_refused(keys, duration):
    with pytest.raises(InvalidDuration):
        await make(keys, expires_in_s=duration)


# --- ends ---


async def test_an_expired_key_opens_nothing(keys, clock):
    """From that very microsecond on, although it was used just before."""
    made = await make(keys, expires_in_s=60)
    clock.advance(59.9)
    await log_in(keys, made)
    clock.advance(0.1)
    with pytest.raises(Unauthenticated):
        await log_in(keys, made)
    assert (await keys.get("acme", made.key.id)).state is KeyState.EXPIRED


async def test_a_revoked_key_opens_nothing(keys):
    """At once on the node that has revoked it; doing it again changes nothing."""
    made = await make(keys)
    await log_in(keys, made)
    revoked = await keys.revoke(RevokeKey(org="acme", key_id=made.key.id))
    with pytest.raises(Unauthenticated):
        await log_in(keys, made)
    assert revoked.state is KeyState.REVOKED
    assert await keys.revoke(RevokeKey(org="acme", key_id=made.key.id)) == revoked
    assert [act.action for act in await keys.audit("acme")] == ["keys.revoke", "keys.create"]


async def test_a_revocation_counts_on_every_node_within_a_second(node, clock):
    """An answer is remembered for half a second, counted from the question."""
    here, there = await node(), await node()
    made = await make(here)
    await log_in(there, made)
    await here.revoke(RevokeKey(org="acme", key_id=made.key.id))
    clock.advance(0.499)
    await log_in(there, made)
    clock.advance(0.001)
    with pytest.raises(Unauthenticated):
        await log_in(there, made)


async def test_a_key_made_elsewhere_counts_within_a_second(node, clock):
    """Although its hash was refused a moment ago."""
    here, there = await node(), await node()
    made = await make(here)
    await there.any()
    clock.advance(0.5)
    await log_in(there, made)
    assert await there.any() is True


async def test_a_closed_org_has_no_keys_that_count(keys):
    """Neither old ones nor new ones, and its name is not given again."""
    made = await make(keys)
    await keys.close_org(CloseOrg(slug="acme"))
    with pytest.raises(Unauthenticated):
        await log_in(keys, made)
    for attempt in (make(keys), keys.create_org(CreateOrg(slug="acme"))):
        with pytest.raises(OrgClosed):
            await attempt
    with pytest.raises(OrgClosed):
        await keys.rotate(RotateKey(org="acme", key_id=made.key.id))
    assert [act.action for act in await keys.audit("acme")] == ["orgs.close", "keys.create"]


async def test_a_use_is_noted_now_and_then(keys, clock):
    """Not at every call."""
    made = await make(keys)
    await log_in(keys, made)

    async def noted() -> Any:
        return (await keys.get("acme", made.key.id)).last_used_at

    await until(noted)
    assert await noted() == START
    clock.advance(299)
    await log_in(keys, made)
    assert await noted() == START
    clock.advance(1)
    await log_in(keys, made)
    await until(lambda: _is(noted, START + 300 * SECOND))


async def _is(ask: Any, value: Any) -> bool:
    return await ask() == value


# --- rotation ---


async def test_both_secrets_count_during_the_overlap(keys, clock):
    """Then only the new one does. The key stays the same key."""
    old = await make(keys, Role.WRITER)
    new = await keys.rotate(RotateKey(org="acme", key_id=old.key.id, overlap_s=60))
    assert (new.key.id, new.key.role, new.key.old_until_at) == (old.key.id, Role.WRITER, START + 60 * SECOND)
    assert (await log_in(keys, old)).key_id == (await log_in(keys, new)).key_id
    clock.advance(60)
    with pytest.raises(Unauthenticated):
        await log_in(keys, old)
    assert (await log_in(keys, new)).role is Role.WRITER
    assert (await keys.get("acme", old.key.id)).old_until_at is None


async def test_without_an_overlap_the_old_secret_ends_at_once(keys):
    old = await make(keys)
    new = await keys.rotate(RotateKey(org="acme", key_id=old.key.id, overlap_s=0))
    with pytest.raises(Unauthenticated):
        await log_in(keys, old)
    await log_in(keys, new)


async def test_a_second_rotation_ends_the_first_secret(keys):
    """Two secrets count at a time, never three."""
    first = await make(keys)
    second = await keys.rotate(RotateKey(org="acme", key_id=first.key.id))
    third = await keys.rotate(RotateKey(org="acme", key_id=first.key.id))
    with pytest.raises(Unauthenticated):
        await log_in(keys, first)
    await log_in(keys, second)
    await log_in(keys, third)


async def test_revoking_ends_both_secrets(keys):
    old = await make(keys)
    new = await keys.rotate(RotateKey(org="acme", key_id=old.key.id))
    await keys.revoke(RevokeKey(org="acme", key_id=old.key.id))
    for made in (old, new):
        with pytest.raises(Unauthenticated):
            await log_in(keys, made)


async def test_a_key_that_has_ended_gets_no_other_secret(keys, clock):
    revoked, expired = await make(keys), await make(keys, expires_in_s=1)
    await keys.revoke(RevokeKey(org="acme", key_id=revoked.key.id))
    clock.advance(1)
    for made in (revoked, expired):
        with pytest.raises(KeyEnded):
            await keys.rotate(RotateKey(org="acme", key_id=made.key.id))


@pytest.mark.parametrize("overlap", [-1, float("nan"), 1e12])
async def test_an_overlap_that_can_not_be_is_refused(keys, overlap):
    made = await make(keys)
    with pytest.raises(InvalidDuration):
        await keys.rotate(RotateKey(org="acme", key_id=made.key.id, overlap_s=overlap))


# --- who may ---


@pytest.mark.parametrize(("role", "other"), PAIRS)
async def test_nobody_gives_renews_or_takes_more_than_he_has(keys, role, other):
    """Every role against every other."""
    by = await log_in(keys, await make(keys, role))
    target = await make(keys, other)
    attempts = (
        lambda: make(keys, other, by=by),
        lambda: keys.rotate(RotateKey(org="acme", key_id=target.key.id, by=by)),
        lambda: keys.revoke(RevokeKey(org="acme", key_id=target.key.id, by=by)),
    )
    before = await keys.list("acme")
    for attempt in attempts:
        if other in INCLUDED[role]:
            await attempt()
        else:
            with pytest.raises(Forbidden):
                await attempt()
    if other not in INCLUDED[role]:
        assert [replace(key, last_used_at=None) for key in await keys.list("acme")] == [
            replace(key, last_used_at=None) for key in before
        ]


async def test_nobody_makes_keys_of_another_org(keys):
    """Neither of one that is there nor of one that is not."""
    by = await log_in(keys, await make(keys))
    await make(keys, org="other")
    for org in ("other", "third"):
        with pytest.raises(Forbidden):
            await make(keys, Role.READER, org=org, by=by)
    assert [org.slug for org in await keys.orgs()] == ["acme", "other"]


async def test_a_key_of_another_org_is_not_there(keys):
    """The same answer as for an id that nobody has."""
    by, foreign = await log_in(keys, await make(keys)), await make(keys, org="other")
    for key_id in (foreign.key.id, "no-such-key"):
        for attempt in (
            keys.get("acme", key_id),
            keys.revoke(RevokeKey(org="acme", key_id=key_id, by=by)),
            keys.rotate(RotateKey(org="acme", key_id=key_id, by=by)),
        ):
            with pytest.raises(KeyNotFound) as refused:
                await attempt
            assert refused.value.message == f"no API key {key_id!r} in org 'acme': check the id"
    await log_in(keys, foreign)


async def test_no_key_makes_or_closes_orgs(keys):
    """Not even an admin's own org; whoever has the database may, and so may one in development."""
    by = await log_in(keys, await make(keys))
    with pytest.raises(Forbidden):
        await keys.create_org(CreateOrg(slug="new", by=by))
    with pytest.raises(Forbidden):
        await keys.close_org(CloseOrg(slug="acme", by=by))
    assert (await keys.create_org(CreateOrg(slug="new", by=Principal("new", Role.ADMIN)))).slug == "new"
    assert await keys.create_org(CreateOrg(slug="new")) == (await keys.orgs())[1]


async def test_an_org_that_is_not_there_can_not_be_closed(keys):
    with pytest.raises(OrgNotFound):
        await keys.close_org(CloseOrg(slug="acme"))


async def test_a_key_that_was_revoked_meanwhile_makes_none(keys):
    """The door let it in a moment ago; the transaction looks once more."""
    made = await make(keys)
    by = await log_in(keys, made)
    await keys.revoke(RevokeKey(org="acme", key_id=made.key.id))
    with pytest.raises(Unauthenticated):
        await make(keys, by=by)


async def test_a_role_is_what_the_database_says(keys):
    """Not what the caller says it is."""
    by = replace(await log_in(keys, await make(keys, Role.READER)), role=Role.ADMIN)
    with pytest.raises(Forbidden):
        await make(keys, by=by)


# --- what is stored and shown ---


async def test_no_table_holds_a_key(keys, database_url):
    """The whole database is searched for every text that was ever shown."""
    first = await make(keys)
    second = await keys.rotate(RotateKey(org="acme", key_id=first.key.id))
    stored = dump(database_url)
    assert digest(second) in stored
    for made in (first, second):
        assert made.text not in stored
        assert made.text[7:20] not in stored


async def test_what_is_printed_holds_no_key(keys):
    """Neither the answer nor the principal, nor the operation that made it."""
    made = await make(keys)
    principal = await log_in(keys, made)
    operation = Create(CreateKey(org="a", name="b", role=Role.READER), digest(made), "hf_", b"")
    for shown in (repr(made), str(made), f"{made!r}", repr(principal), repr(operation)):
        assert made.text[7:] not in shown
        assert digest(made) not in shown


async def test_views_hold_no_hash(keys):
    """Nothing to log in with, nothing to compare with."""
    made = await make(keys)
    assert digest(made) not in repr(await keys.list("acme"))


# --- looking up ---


class CountedStore:
    """Counts the questions; may hold them back."""

    def __init__(self, keys: LocalKeys) -> None:
        self.asked: list[str] = []
        self.read: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None
        self._fetch = keys._cache._fetch
        keys._cache._fetch = self.fetch

    async def fetch(self, key_hash: str) -> Any:
        self.asked.append(key_hash)
        found = await self._fetch(key_hash)
        self.read.append(key_hash)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return found


async def test_right_wrong_revoked_and_expired_keys_cost_the_same(keys, clock):
    """One query each, by the same path: time tells nobody which of them exist."""
    made = [await make(keys), await make(keys), await make(keys, expires_in_s=1)]
    await keys.revoke(RevokeKey(org="acme", key_id=made[1].key.id))
    clock.advance(2)
    store = CountedStore(keys)
    hashes = [*(digest(one) for one in made), f"{7:064x}"]
    await asyncio.gather(*(keys.authenticate(one) for one in hashes), return_exceptions=True)
    assert store.asked == hashes
    await asyncio.gather(*(keys.authenticate(one) for one in hashes), return_exceptions=True)
    assert store.asked == hashes


async def test_calls_at_once_share_one_query(keys):
    """Also when whoever asked first has given up."""
    made = await make(keys)
    store = CountedStore(keys)
    store.gate.clear()
    first, *others = [asyncio.create_task(log_in(keys, made)) for _ in range(50)]
    await until(lambda: store.asked)
    first.cancel()
    store.gate.set()
    assert len(set(await asyncio.gather(*others))) == 1
    assert len(store.asked) == 1


async def test_an_answer_that_comes_late_is_not_kept(keys, clock):
    """Its half second began with the question."""
    made = await make(keys)
    store = CountedStore(keys)
    store.gate.clear()
    asking = asyncio.create_task(log_in(keys, made))
    await until(lambda: len(store.asked) == 1)
    clock.advance(0.6)
    later = asyncio.create_task(log_in(keys, made))
    await until(lambda: len(store.asked) == 2)
    clock.advance(0.6)
    store.gate.set()
    await asyncio.gather(asking, later)
    await log_in(keys, made)
    assert len(store.asked) == 3


async def test_an_answer_from_before_a_revocation_is_not_kept(keys):
    """It was on its way while the key was revoked here."""
    made = await make(keys)
    store = CountedStore(keys)
    store.gate.clear()
    asking = asyncio.create_task(log_in(keys, made))
    await until(lambda: store.read)
    await keys.revoke(RevokeKey(org="acme", key_id=made.key.id))
    store.gate.set()
    await asking
    with pytest.raises(Unauthenticated):
        await log_in(keys, made)


async def test_a_database_that_does_not_answer_lets_nobody_in(keys):
    """The error is passed on, and not remembered."""
    made = await make(keys)
    store = CountedStore(keys)
    store.failure = StorageBusy("locked")
    with pytest.raises(StorageBusy):
        await log_in(keys, made)
    store.failure = None
    await log_in(keys, made)


async def test_wrong_keys_are_remembered_in_a_bounded_place(keys):
    """And push out no right one."""
    keys._cache._most = 10
    made = await make(keys)
    await log_in(keys, made)
    store = CountedStore(keys)
    for number in range(50):
        with pytest.raises(Unauthenticated):
            await keys.authenticate(f"{number:064x}")
    assert len(keys._cache) == 11
    await log_in(keys, made)
    assert digest(made) not in store.asked


# --- the record ---


async def test_every_act_is_recorded_with_who_what_when_and_from_where(keys, clock):
    """The newest first, numbered without gaps; refused ones are not there."""
    admin = await make(keys)
    by = await log_in(keys, admin)
    clock.advance(1)
    made = await make(keys, Role.READER, by=by, address="192.0.2.7", name="ci")
    await asyncio.gather(make(keys, by=replace(by, org="x"), org="y"), return_exceptions=True)
    await keys.rotate(RotateKey(org="acme", key_id=made.key.id, by=by))
    await keys.revoke(RevokeKey(org="acme", key_id=made.key.id, by=by))
    acts = await keys.audit("acme")
    assert [(act.seq, act.action) for act in acts] == [
        (4, "keys.revoke"),
        (3, "keys.rotate"),
        (2, "keys.create"),
        (1, "keys.create"),
    ]
    create, first = acts[2], acts[3]
    assert (create.actor, create.subject, create.at) == (admin.key.id, made.key.id, START + SECOND)
    assert (create.address, create.detail, create.outcome) == ("192.0.2.7", "reader ci", "done")
    assert first.actor == "operator"
    assert await keys.audit("other") == []


async def test_acts_of_others_are_recorded_too(keys):
    """Whatever text comes along: it is made fit to be kept, and never prevents the act."""
    act = await keys.record(
        RecordAuditEntry(org="acme", action="executions.terminate", subject="a\0b\n\ud800" + "x" * 5_000, address="::1")
    )
    assert act.subject == "a\ufffdb\ufffd\ufffd" + "x" * 995
    assert await keys.audit("acme") == [act]
    assert (await keys.verify_audit("acme")).is_whole


async def test_a_record_is_read_in_pages(keys):
    for number in range(5):
        await keys.record(RecordAuditEntry(org="acme", action=f"act.{number}"))
    assert [act.seq for act in await keys.audit("acme", limit=2)] == [5, 4]
    assert [act.seq for act in await keys.audit("acme", before=4, limit=2)] == [3, 2]
    for limit in (0, 1_001, True):
        with pytest.raises(InvalidRequest):
            await keys.audit("acme", limit=limit)


ANOTHER_END = (
    "INSERT INTO holdfast_audit SELECT org, 7, at, actor, action, subject, address, outcome, detail, digest "
    "FROM holdfast_audit WHERE seq = 6"
)


@pytest.mark.parametrize(
    ("damage", "first_bad"),
    [
        ("UPDATE holdfast_audit SET actor = 'me' WHERE seq = 3", 3),
        ("UPDATE holdfast_audit SET digest = 'x' WHERE seq = 3", 3),
        ("UPDATE holdfast_audit SET at = at + 1 WHERE seq = 1", 1),
        ("UPDATE holdfast_audit SET detail = 'x' WHERE seq = 6", 6),
        ("DELETE FROM holdfast_audit WHERE seq = 3", 3),
        ("DELETE FROM holdfast_audit WHERE seq = 1", 1),
        ("DELETE FROM holdfast_audit WHERE seq > 4", 5),
        ("DELETE FROM holdfast_audit", 1),
        ("UPDATE holdfast_orgs SET audit_digest = 'x'", 6),
        ("UPDATE holdfast_orgs SET audit_seq = 4", 4),
        (
            "UPDATE holdfast_audit SET action = CASE seq WHEN 2 THEN 'act.2' ELSE 'act.1' END WHERE seq IN (2, 3)",
            2,
        ),
        (ANOTHER_END, 7),
    ],
)
async def test_a_record_that_was_tampered_with_says_where(keys, database_url, damage, first_bad):
    """Edited, cut, swapped, made longer: the first number that does not fit."""
    for number in range(6):
        await keys.record(RecordAuditEntry(org="acme", action=f"act.{number}"))
    assert (await keys.verify_audit("acme")).first_bad is None
    await change(database_url, damage)
    assert (await keys.verify_audit("acme")).first_bad == first_bad


async def test_a_record_that_is_not_there(keys):
    with pytest.raises(OrgNotFound):
        await keys.verify_audit("nobody")
