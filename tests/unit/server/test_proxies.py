"""Whose address a call has when proxies stand before the server."""

from __future__ import annotations

import pytest

from holdfast.config import ServerConfig
from holdfast.errors import InvalidServer
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from holdfast.server.auth.proxies import Proxies
from tests.rest_server import EXECUTIONS, make_key, rest_server

PROXY, OTHER = "10.0.0.7", "192.0.2.1"


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        (PROXY, ["203.0.113.9"], "203.0.113.9"),
        (PROXY, ["203.0.113.9", "10.1.2.3"], "203.0.113.9"),
        (PROXY, ["203.0.113.9, 10.1.2.3"], "203.0.113.9"),
        # What the caller has put there himself stands before what the proxies have added.
        (PROXY, ["1.1.1.1, 203.0.113.9"], "203.0.113.9"),
        (PROXY, ["nonsense, 203.0.113.9"], "203.0.113.9"),
        (PROXY, [], PROXY),
        (PROXY, [""], PROXY),
        (PROXY, ["203.0.113.9, nonsense"], PROXY),
        (PROXY, ["203.0.113.9, nonsense, 10.1.2.3"], "10.1.2.3"),
        (PROXY, ["10.9.9.9"], "10.9.9.9"),
        (PROXY, ["203.0.113.9:4711"], "203.0.113.9"),
        (PROXY, ["[2001:db8::1]:443"], "2001:db8::1"),
        (PROXY, ["2001:db8::1"], "2001:db8::1"),
        (PROXY, [b"203.0.113.9"], "203.0.113.9"),
        (PROXY, [b"\xff\xfe"], PROXY),
        (PROXY, ["1.1.1.1," * 5_000 + "203.0.113.9"], "203.0.113.9"),
        (f"::ffff:{PROXY}", ["203.0.113.9"], "203.0.113.9"),
        ("fd00::5", ["203.0.113.9"], "203.0.113.9"),
        (OTHER, ["203.0.113.9"], OTHER),
        ("", ["203.0.113.9"], ""),
    ],
)
def test_only_trusted_proxies_are_believed(peer, forwarded, expected):
    assert expected == Proxies(["10.0.0.0/8", "fd00::/8"]).address(peer, forwarded)


def test_without_proxies_nobody_is_believed():
    assert PROXY == Proxies().address(PROXY, ["203.0.113.9"])


@pytest.mark.parametrize("bad", [["nonsense"], ["10.0.0.0/99"], [None], "10.0.0.1"])
def test_what_is_no_network_is_refused_at_the_start(bad):
    with pytest.raises(InvalidServer) as refused:
        Proxies(bad)
    assert "trusted_proxies" == refused.value.field


async def wrong_keys(api, addresses):
    """The statuses of calls with a wrong key that say they come from these addresses."""
    headers = [{"authorization": "Bearer hf_wrong", "x-forwarded-for": address} for address in addresses]
    return [(await api.get(EXECUTIONS, headers=each)).status for each in headers]


async def test_each_caller_behind_a_proxy_has_a_budget_of_its_own(engine):
    """One who tries keys does not use up the tries of the others."""
    running = await engine()
    await make_key(running, Role.ADMIN)
    auth = AuthSettings(mode=AuthMode.KEYS, failures_per_minute=2)
    trusting = ServerConfig(port=0, grpc_port=None, trusted_proxies=("127.0.0.1",))
    async with rest_server(running, auth=auth, config=trusting) as api:
        assert [401, 401, 429] == await wrong_keys(api, ["203.0.113.1"] * 3)
        assert [401] == await wrong_keys(api, ["203.0.113.2"])
    wary = ServerConfig(port=0, grpc_port=None)
    async with rest_server(running, auth=auth, config=wary) as api:
        assert [401, 401, 429] == await wrong_keys(api, ["203.0.113.1", "203.0.113.2", "203.0.113.3"])
