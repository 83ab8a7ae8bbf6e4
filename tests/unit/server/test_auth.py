"""Who is at the door: credentials, budgets for wrong keys, the rule for starting, the record of acts."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.contract.keys import Principal, RecordAuditEntry
from holdfast.errors import (
    AmbiguousCredentials,
    Conflict,
    Forbidden,
    HoldfastError,
    InvalidServer,
    StorageBusy,
    TooManyRequests,
    Unauthenticated,
    UnprotectedServer,
)
from holdfast.model.api_key_text import hash_key, make_key
from holdfast.model.keys import Role
from holdfast.server.auth import Authenticator, AuthMode, AuthSettings, open_authenticator
from holdfast.server.auth.login_throttle import LoginThrottle, place_of
from holdfast.server.auth.settings import is_loopback

KEY = make_key(bytes(range(32)))
OTHER = make_key(bytes(range(1, 33)))
ADDRESS = "192.0.2.1"
ACME = Principal("acme", Role.WRITER, "key-1", hash_key(KEY))


class FakeKeys:
    """The contract's keys: answers what it is told, counts what it is asked."""

    def __init__(self, *principals: Principal) -> None:
        self.principals = {principal.key_hash: principal for principal in principals}
        self.asked: list[str] = []
        self.acts: list[RecordAuditEntry] = []
        self.failure: HoldfastError | None = None

    async def authenticate(self, key_hash: str) -> Principal:
        self.asked.append(key_hash)
        await asyncio.sleep(0)
        self._fail()
        if key_hash not in self.principals:
            raise Unauthenticated
        return self.principals[key_hash]

    async def any(self) -> bool:
        self._fail()
        return bool(self.principals)

    async def record(self, request: RecordAuditEntry) -> None:
        self._fail()
        self.acts.append(request)

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys() -> Any:
    return FakeKeys(ACME)


@pytest.fixture
def api(keys: Any, clock: Clock) -> Authenticator:
    return Authenticator(keys, AuthSettings(failures_per_minute=5), clock=clock)


async def come(
    api: Authenticator, *credentials: str | bytes, address: str = ADDRESS, org: str | None = None
) -> Principal:
    return await api.principal(credentials, address=address, org=org)


def wrong_key(number: int) -> str:
    return make_key(number.to_bytes(32))


# --- credentials ---


@pytest.mark.parametrize("value", [f"Bearer {KEY}", f"bearer {KEY}", f"BEARER {KEY}", f"Bearer {KEY}".encode()])
async def test_a_key_is_let_in(api, value):
    """As text or bytes; the name of the scheme has no case."""
    assert await come(api, value) == ACME


async def test_the_key_decides_the_org(api):
    """Whatever org the path names."""
    assert (await come(api, f"Bearer {KEY}", org="other")).org == "acme"


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "Bearer",
        "Bearer ",
        KEY,
        f"Basic {KEY}",
        f"Token {KEY}",
        f"Bearer  {KEY}",
        f"Bearer {KEY} ",
        f"Bearer\t{KEY}",
        f"Bearer {KEY},Bearer {KEY}",
        f"Bearer {KEY[:-1]}",
        f"Bearer {KEY}0",
        f"Bearer {KEY.swapcase()}",
        f"Bearer {KEY[:-1]}\0",
        f"Bearer {KEY[:-1]}ü",
        f"Bearer {KEY[:-1]}\ud800",
        b"Bearer " + KEY[:-1].encode() + b"\xff",
        "Bearer " + "x" * 65_536,
        f"Bearer {hash_key(KEY)}",
        f"Bearer {OTHER}",
    ],
)
async def test_what_is_no_key_is_always_refused_alike(api, value):
    """The same error with the same words, never another one."""
    with pytest.raises(Unauthenticated) as refused:
        await come(api, value)
    assert (refused.value.message, refused.value.details) == (Unauthenticated().message, {})


async def test_no_credentials_are_refused(api):
    """And are no wrong key: they cost nothing."""
    for _ in range(20):
        with pytest.raises(Unauthenticated):
            await come(api)
    assert await come(api, f"Bearer {KEY}") == ACME


@pytest.mark.parametrize("second", [f"Bearer {KEY}", f"Bearer {OTHER}", "", "Basic x"])
@pytest.mark.parametrize("may_be_open", [False, True])
async def test_two_credentials_are_refused(keys, second, may_be_open):
    """Never "the first wins", also if both are the same."""
    api = Authenticator(keys, AuthSettings(), may_be_open=may_be_open)
    with pytest.raises(AmbiguousCredentials):
        await come(api, f"Bearer {KEY}", second)
    assert keys.asked == []


@pytest.mark.parametrize("value", [f"Bearer {KEY[:-1]}0", "Bearer x", "nonsense", "Bearer " + "ü" * 52])
async def test_a_key_with_a_wrong_checksum_costs_no_query(api, keys, value):
    """It can't be in the database."""
    for _ in range(10):
        with pytest.raises((Unauthenticated, TooManyRequests)):
            await come(api, value)
    assert keys.asked == []


# --- budgets ---


@pytest.mark.parametrize("wrong", [wrong_key, lambda number: f"nonsense {number}"])
async def test_an_address_has_a_budget_for_wrong_keys(api, keys, clock, wrong):
    """Beyond it nothing is looked up, and the answer says when to come again."""
    for number in range(5):
        with pytest.raises(Unauthenticated):
            await come(api, f"Bearer {wrong(number)}")
    asked = list(keys.asked)
    with pytest.raises(TooManyRequests) as refused:
        await come(api, f"Bearer {wrong(6)}")
    assert keys.asked == asked
    assert refused.value.details["retry_after_s"] == pytest.approx(12)
    clock.now += 12
    with pytest.raises(Unauthenticated):
        await come(api, f"Bearer {wrong(7)}")


async def test_a_thousand_wrong_keys_at_once_are_not_all_looked_up(api, keys):
    """A try is taken before the question is asked."""
    calls = [come(api, f"Bearer {wrong_key(number)}") for number in range(1_000)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert len(keys.asked) == 5
    assert sum(isinstance(answer, TooManyRequests) for answer in answers) == 995


async def test_other_addresses_are_not_affected(api):
    """Also not those of a neighbour."""
    for number in range(6):
        with pytest.raises((Unauthenticated, TooManyRequests)):
            await come(api, f"Bearer {wrong_key(number)}")
    assert await come(api, f"Bearer {KEY}", address="192.0.2.2") == ACME


async def test_a_key_that_was_right_continues_from_an_address_without_tries(api):
    """Whoever shares the address with somebody who guesses is not locked out."""
    await come(api, f"Bearer {KEY}")
    for number in range(6):
        with pytest.raises((Unauthenticated, TooManyRequests)):
            await come(api, f"Bearer {wrong_key(number)}")
    assert await come(api, f"Bearer {KEY}") == ACME


async def test_a_key_that_is_right_costs_no_try(api):
    """However often it comes, one after another or all at once."""
    for _ in range(20):
        await come(api, f"Bearer {KEY}")
    await asyncio.gather(*(come(api, f"Bearer {KEY}") for _ in range(100)))


async def test_a_first_burst_with_a_right_key_is_let_in(api):
    """A hundred calls before the first answer are one key, not a hundred tries."""
    answers = await asyncio.gather(*(come(api, f"Bearer {KEY}") for _ in range(100)))
    assert answers == [ACME] * 100


async def test_a_revoked_key_that_keeps_coming_runs_into_the_budget(api, keys):
    """It was right once; that does not help for ever."""
    await come(api, f"Bearer {KEY}")
    keys.principals.clear()
    for _ in range(5):
        with pytest.raises(Unauthenticated):
            await come(api, f"Bearer {KEY}")
    with pytest.raises(TooManyRequests):
        await come(api, f"Bearer {KEY}")


async def test_a_database_that_is_away_costs_no_try_and_lets_nobody_in(api, keys):
    """The error is passed on."""
    keys.failure = StorageBusy("locked")
    for _ in range(20):
        with pytest.raises(StorageBusy):
            await come(api, f"Bearer {KEY}")
    keys.failure = None
    assert await come(api, f"Bearer {KEY}") == ACME


async def test_what_is_remembered_is_bounded(keys, clock):
    """Addresses and keys that were quiet for the longest time go first."""
    api = Authenticator(keys, AuthSettings(addresses=10, known_keys=3), clock=clock)
    for number in range(100):
        made = make_key(number.to_bytes(32))
        keys.principals[hash_key(made)] = Principal("acme", Role.READER, str(number), hash_key(made))
        await come(api, f"Bearer {made}")
        with pytest.raises(Unauthenticated):
            await come(api, "Bearer x", address=f"192.0.2.{number}")
    assert len(api._known) == 3
    assert len(api._throttle._left) == 10
    assert not api._lookups


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
        ("x" * 1_000, "x" * 64),
    ],
)
def test_whose_tries_are_counted_together(address, place):
    """One person has all addresses of a /64."""
    assert place_of(address) == place


def test_a_budget_fills_up_again_and_no_further(clock):
    """After a minute all of it is back, and then the address is forgotten."""
    throttle = LoginThrottle(2, 10, clock)
    throttle.take("a")
    clock.now += 3_600
    throttle.take("a")
    throttle.take("a")
    with pytest.raises(TooManyRequests):
        throttle.take("a")
    for _ in range(3):
        throttle.give_back("a")
    assert not throttle._left


# --- streams ---


async def test_an_open_stream_ends_with_its_key(api, keys):
    """What the stream was opened with is asked for again."""
    principal = await come(api, f"Bearer {KEY}")
    await api.check_again(principal)
    keys.principals.clear()
    with pytest.raises(Unauthenticated):
        await api.check_again(principal)


async def test_an_open_stream_ends_when_its_key_means_something_else(api, keys):
    """Less than before, or another org."""
    principal = await come(api, f"Bearer {KEY}")
    keys.principals[ACME.key_hash] = Principal("acme", Role.READER, "key-1", ACME.key_hash)
    with pytest.raises(Unauthenticated):
        await api.check_again(principal)


async def test_a_stream_of_a_developer_ends_when_there_is_a_key(keys):
    """The door is not open any more."""
    nobody = FakeKeys()
    api: Any = await open_authenticator(nobody)  # type: ignore[arg-type]  # as much of it as is asked
    principal = await come(api, org="acme")
    await api.check_again(principal)
    nobody.principals = keys.principals
    with pytest.raises(Unauthenticated):
        await api.check_again(principal)


# --- roles ---


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("needed", list(Role))
def test_a_role_that_is_not_enough_is_refused(api, role, needed):
    """With what would be needed."""
    principal = Principal("acme", role)
    if role.allows(needed):
        api.require(principal, needed)
        return
    with pytest.raises(Forbidden) as refused:
        api.require(principal, needed)
    assert refused.value.details == {"role": role.value, "needed": needed.value}


# --- starting ---


LOOPBACK = ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "unix:/run/holdfast.sock", "/run/holdfast.sock")
OUTSIDE = (
    "0.0.0.0",
    "::",
    "",
    "192.0.2.1",
    "2001:db8::1",
    "example.com",
    "localhost.example.com",
    "127.0.0.1.evil",
    "*",
)


@pytest.mark.parametrize("host", LOOPBACK)
def test_addresses_that_stay_on_this_machine(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", OUTSIDE)
def test_addresses_that_others_can_reach(host):
    """A name may mean anything tomorrow."""
    assert not is_loopback(host)


async def start(keys: Any, binds: Sequence[str], mode: AuthMode = AuthMode.AUTO) -> Authenticator:
    return await open_authenticator(keys, AuthSettings(mode=mode), binds)


@pytest.mark.parametrize("host", OUTSIDE)
@pytest.mark.parametrize("mode", list(AuthMode))
async def test_a_server_that_others_can_reach_does_not_start_without_keys(host, mode):
    """In no mode, also if it listens on this machine as well."""
    for binds in ([host], ["127.0.0.1", host]):
        with pytest.raises(UnprotectedServer):
            await start(FakeKeys(), binds, mode)


@pytest.mark.parametrize("host", OUTSIDE)
async def test_a_server_that_others_can_reach_never_does_without_keys(keys, host):
    """Development mode is refused, whatever keys there are; with keys everybody needs one, also when all are gone."""
    with pytest.raises(UnprotectedServer):
        await start(keys, [host], AuthMode.DEV)
    api = await start(keys, [host])
    keys.principals.clear()
    with pytest.raises(Unauthenticated):
        await come(api, org="acme")


async def test_mode_keys_needs_a_key_on_this_machine_too(keys):
    with pytest.raises(UnprotectedServer):
        await start(FakeKeys(), ["127.0.0.1"], AuthMode.KEYS)
    api = await start(keys, ["127.0.0.1"], AuthMode.KEYS)
    with pytest.raises(Unauthenticated):
        await come(api, org="acme")


@pytest.mark.parametrize("host", LOOPBACK)
async def test_a_developer_without_keys_is_admin_of_the_org_in_the_path(host):
    """A key that is sent along does not matter."""
    api = await start(FakeKeys(), [host])
    assert await come(api, org="acme") == Principal("acme", Role.ADMIN)
    assert await come(api, f"Bearer {KEY}") == Principal("default", Role.ADMIN)


async def test_the_first_key_closes_the_server():
    """Whoever makes one on a running server means it."""
    nobody = FakeKeys()
    api = await start(nobody, ["127.0.0.1"])
    await come(api, org="acme")
    nobody.principals[ACME.key_hash] = ACME
    with pytest.raises(Unauthenticated):
        await come(api, org="acme")
    assert await come(api, f"Bearer {KEY}") == ACME


async def test_mode_dev_stays_open(keys):
    """On this machine, because it was asked for."""
    api = await start(keys, ["127.0.0.1"], AuthMode.DEV)
    assert await come(api, org="acme") == Principal("acme", Role.ADMIN)


@pytest.mark.parametrize("mode", [AuthMode.AUTO, AuthMode.KEYS])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_a_server_whose_database_is_away_does_not_start(keys, mode, host):
    """The reason is the database's."""
    keys.failure = StorageBusy("locked")
    with pytest.raises(StorageBusy):
        await start(keys, [host], mode)


async def test_a_developer_is_not_let_in_while_the_database_is_away():
    """Not knowing whether there are keys is not the same as there being none."""
    nobody = FakeKeys()
    api = await start(nobody, ["127.0.0.1"])
    nobody.failure = StorageBusy("locked")
    with pytest.raises(StorageBusy):
        await come(api, org="acme")


async def test_a_server_without_an_address_does_not_start(keys):
    with pytest.raises(InvalidServer):
        await start(keys, [])


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"mode": "none"}, "mode"),
        ({"mode": ""}, "mode"),
        ({"mode": None}, "mode"),
        ({"mode": "AUTO"}, "mode"),
        ({"mode": ["dev"]}, "mode"),
        ({"authenticator": "jwt"}, "authenticator"),
        ({"failures_per_minute": "0"}, "failures_per_minute"),
        ({"failures_per_minute": "many"}, "failures_per_minute"),
        ({"failures_per_minute": ""}, "failures_per_minute"),
        ({"failures_per_minute": True}, "failures_per_minute"),
        ({"failures_per_minute": -1}, "failures_per_minute"),
        ({"failures_per_minute": "9" * 100}, "failures_per_minute"),
        ({"addresses": 0}, "addresses"),
        ({"known_keys": 1.5}, "known_keys"),
    ],
)
def test_settings_that_are_broken_are_refused(given, field):
    """They never mean "let all in"."""
    with pytest.raises(InvalidServer) as refused:
        AuthSettings.read(given)
    assert refused.value.field == field


@pytest.mark.parametrize("mode", ["dev", None, "off", 0])
def test_a_mode_that_is_none_is_refused(mode):
    """Also when it is given from Python."""
    with pytest.raises(InvalidServer):
        AuthSettings(mode=mode)


def test_settings_are_read_from_text():
    assert AuthSettings.read({"mode": "keys", "failures_per_minute": "7"}) == AuthSettings(
        mode=AuthMode.KEYS, failures_per_minute=7
    )


# --- the record ---


async def test_an_act_is_recorded_before_it_is_done(api, keys):
    """With who, what, on what and from where."""
    async with api.audited(ACME, "executions.terminate", "e1", address=ADDRESS):
        (begun,) = keys.acts
    assert keys.acts == [begun]
    assert begun == RecordAuditEntry(
        org="acme", action="executions.terminate", subject="e1", outcome="begun", by=ACME, address=ADDRESS
    )


async def test_what_can_not_be_recorded_is_not_done(api, keys):
    """The database says no: so does the door."""
    keys.failure = StorageBusy("locked")
    done = False
    with pytest.raises(StorageBusy):
        async with api.audited(ACME, "executions.terminate", "e1"):
            done = True
    assert not done


async def test_an_act_that_is_refused_is_recorded_as_such(api, keys):
    """By the code of the refusal."""
    with pytest.raises(Conflict):
        async with api.audited(ACME, "executions.reset", "e1"):
            raise Conflict
    assert [act.outcome for act in keys.acts] == ["begun", "conflict"]


async def test_acts_are_recorded_by_hand(api, keys):
    await api.record(ACME, "exports.read", "all", detail="12 rows")
    assert [(act.action, act.outcome, act.detail) for act in keys.acts] == [("exports.read", "done", "12 rows")]


# --- with real keys ---


async def test_a_real_key_through_the_server(engine):
    """From the text that is shown once to the principal, until it is revoked."""
    from holdfast.contract.keys import CreateKey, RevokeKey

    keys = (await engine())._local.keys
    made = await keys.create(CreateKey(org="acme", name="ci", role=Role.WRITER))
    api = await open_authenticator(keys, binds=["0.0.0.0"])
    principal = await come(api, f"Bearer {made.text}")
    assert (principal.org, principal.role, principal.key_id) == ("acme", Role.WRITER, made.key.id)
    await keys.revoke(RevokeKey(org="acme", key_id=made.key.id))
    with pytest.raises(Unauthenticated):
        await come(api, f"Bearer {made.text}")
    with pytest.raises(Unauthenticated):
        await api.check_again(principal)
