"""Bodies that are no good, on every operation that takes one: refused with the reason, never a 5xx, nothing changed."""

from __future__ import annotations

import json

import pytest

from holdfast.config import ServerConfig
from holdfast.server.operations import OPERATIONS
from tests.rest_server import EXECUTIONS
from tests.unit.server.rest.test_access import path_of

WITH_BODY = [operation for operation in OPERATIONS if operation.body is not None]
START = b'{"workflow_kind": "asks", "workflow_input": %b}'

# A62 to A68.
NO_DOCUMENT = {
    "empty text": b" ",
    "word": b"hello",
    "open": b'{"a": 1',
    "comma": b'{"a": 1,}',
    "two documents": b"{} {}",
    "garbage behind": b"{}x",
    "bom": b"\xef\xbb\xbf{}",
    "latin-1": b'{"a": "\xe4"}',
    "overlong": b'{"a": "\xc0\xaf"}',
    "utf-16": '{"a": 1}'.encode("utf-16"),
    "list": b"[]",
    "null": b"null",
    "number": b"5",
    "text": b'"{}"',
    "deep": b"[" * 100_000,
    "deep and closed": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "key twice": b'{"reason": "a", "reason": "b"}',
    "nan": b'{"a": NaN}',
    "infinity": b'{"a": -Infinity}',
}
NO_PAYLOAD = {
    "1e400": b"1e400",
    "-1e400": b'{"a": [-1e400]}',
    "5,000 digits": b"1" * 5_000,
    "nan": b"NaN",
    "key twice": b'{"a": {"b": 1, "b": 2}}',
    "surrogate": b'"\\ud800 and more"',
    "surrogate in a key": b'{"\\udc00x": 1}',
    "nul": b'"\\u0000"',
    "nul in a key": b'{"a": {"\\u0000": 1}}',
    "depth 101": b"[" * 101 + b"]" * 101,
}
FINE = {
    "pair of surrogates": (b'"\\ud83d\\ude00"', "\U0001f600"),
    "escaped backslash": (b'"\\\\u0000"', "\\u0000"),
    "large": (str(2**63).encode(), 2**63),
    "exact": (str(2**53 + 1).encode(), 2**53 + 1),
    "depth 98": (b"[" * 98 + b"]" * 98, None),
    "brackets in text": (json.dumps("[" * 5_000).encode(), "[" * 5_000),
}


async def nothing_there(api):
    return (await api.get(f"{EXECUTIONS}/count")).json["total"] == 0


async def test_what_is_no_document_is_refused_everywhere(api):
    tried = 0
    for operation in WITH_BODY:
        for name, data in NO_DOCUMENT.items():
            answer = await api.call(operation.method, path_of(operation), data=data)
            assert 422 == answer.status, (operation.name, name, answer.status, answer.data)
            assert answer.json["code"] in {"malformed_body", "invalid_request"}, (operation.name, name)
            tried += 1
    assert len(WITH_BODY) * len(NO_DOCUMENT) == tried
    assert await nothing_there(api)


@pytest.mark.parametrize("payload", NO_PAYLOAD.values(), ids=NO_PAYLOAD.keys())
async def test_payloads_that_no_database_keeps_are_refused(api, payload):
    answer = await api.call("POST", EXECUTIONS, data=START % payload)

    assert (422, "malformed_body") == (answer.status, answer.json["code"])
    assert await nothing_there(api)


@pytest.mark.parametrize(("payload", "value"), FINE.values(), ids=FINE.keys())
async def test_payloads_that_look_bad_and_are_not(api, payload, value):
    answer = await api.call("POST", EXECUTIONS, data=START % payload)
    history = await api.get(f"{EXECUTIONS}/{answer.json['workflow_execution_id']}/history?limit=1")

    assert 201 == answer.status
    if value is not None:
        assert value == history.json["events"][0]["data"]["input"]


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": "application/yaml"},
        {"content-type": "application/x-python-pickle"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "application/json", "content-encoding": "br"},
    ],
)
async def test_other_media_are_refused(api, headers):
    for operation in WITH_BODY:
        answer = await api.call(operation.method, path_of(operation), data=b"{}", headers=headers)
        assert (415, "media_type_refused") == (answer.status, answer.json["code"]), operation.name


async def test_a_charset_does_no_harm(api):
    answer = await api.call(
        "POST", EXECUTIONS, data=START % b"1", headers={"content-type": "Application/JSON; charset=utf-8"}
    )
    assert 201 == answer.status


async def test_a_body_that_is_too_large(open_api):
    """Refused by its declared length, and while it comes if it has declared none. The connection is closed."""
    api = await open_api(config=ServerConfig(port=0, body_bytes=100, payload_body_bytes=1_000))
    fits = await api.call("POST", EXECUTIONS, data=START % (b'"%b"' % (b"x" * 900)))
    large = await api.call("POST", EXECUTIONS, data=START % (b'"%b"' % (b"x" * 1_000)))
    small = await api.call("POST", f"{EXECUTIONS}/x/cancel", {"reason": "x" * 100})
    chunk = b"%x\r\n%b\r\n" % (600, b"x" * 600)
    head = (
        f"POST {EXECUTIONS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        "transfer-encoding: chunked\r\n\r\n"
    )
    chunked = await api.raw(head.encode() + chunk * 2 + b"0\r\n\r\n")

    assert 201 == fits.status
    for answer in (large, small, chunked):
        assert (413, "body_too_large", "close") == (
            answer.status,
            answer.json["code"],
            answer.headers["connection"],
        )


async def test_a_body_with_too_many_parts(open_api):
    api = await open_api(config=ServerConfig(port=0, document_nodes=1_000))
    many = await api.call("POST", EXECUTIONS, data=START % (b"[" + b"1," * 1_000 + b"1]"))
    objects = await api.call("POST", EXECUTIONS, data=START % (b"[" + b"{}," * 600 + b"{}]"))
    text = await api.call("POST", EXECUTIONS, data=START % (b'"' + b"{,[" * 5_000 + b'"'))

    assert [422, 422, 201] == [many.status, objects.status, text.status]


async def test_operations_without_a_body_take_none(api):
    answer = await api.call("GET", EXECUTIONS, data=b"{}")
    assert 413 == answer.status


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ({"workflow_kind": 5}, "workflow_kind"),
        ({"workflow_kind": ""}, "workflow_kind"),
        ({"workflow_kind": "x" * 256}, "workflow_kind"),
        ({"workflow_kind": "a\nb"}, "workflow_kind"),
        ({"workflow_kind": "asks", "workflow_id": "\x7f"}, "workflow_id"),
        ({"workflow_kind": "asks", "priority_seconds": 1.5}, "priority_seconds"),
        ({"workflow_kind": "asks", "priority_seconds": 2**31}, "priority"),
        ({"workflow_kind": "asks", "metadata": {"a": 1}}, "metadata"),
        ({"workflow_kind": "asks", "metadata": []}, "metadata"),
        ({"workflow_kind": "asks", "start_at": "tomorrow"}, "start_at"),
        ({"workflow_kind": "asks", "start_at": "2026-01-01T00:00:00"}, "start_at"),
        ({"workflow_kind": "asks", "execution_timeout_seconds": -1}, "execution_timeout"),
        ({"workflow_kind": "asks", "execution_timeout_seconds": 1e300}, "execution_timeout"),
        ({"workflow_kind": "asks", "if_running": "explode"}, "if_running"),
    ],
)
async def test_the_field_that_is_wrong_is_named(api, body, field):
    answer = await api.post(EXECUTIONS, body)

    assert 422 == answer.status
    assert answer.json["field"].startswith(field), answer.json
    assert await nothing_there(api)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=10000000000000000000000",
        "limit=ten",
        "limit=1&limit=2",
        "offset=5",
        "status=HAPPY",
        "metadata=novalue",
        "created_from=yesterday",
        "cursor=%F0%28",
        "cursor=AAAA",
        "workflow_id=%ff",
        "&".join(["metadata=a%3Db"] * 51),
        "&".join(["x=1"] * 500),
    ],
)
async def test_queries_that_are_no_good_a102(api, query):
    answer = await api.get(f"{EXECUTIONS}?{query}")
    assert (422, "application/problem+json") == (answer.status, answer.headers["content-type"])


@pytest.mark.parametrize("name", ["%00", "a%0D%0Ab", "%FF", "x" * 256, "%E2%80%AE" * 90])
async def test_ids_in_paths_follow_the_grammar_a83(api, name):
    for operation in OPERATIONS:
        for parameter in operation.parameters:
            if parameter == "org":
                continue
            path = path_of(operation, **{parameter: name})
            data = None if operation.body is None else json.dumps(operation.example or {}).encode()
            answer = await api.call(operation.method, path, data=data)
            assert answer.status in {404, 422}, (operation.name, parameter, answer.status, answer.data)


async def test_an_org_that_is_no_name(api):
    for org in ("%00", "x" * 256, "a%0Ab"):
        answer = await api.get(f"/api/orgs/{org}/workflow-executions")
        assert (422, "org") == (answer.status, answer.json["field"])


async def test_a_nul_in_any_text_is_no_fault_of_the_server(api):
    """What one database takes and another does not is refused before it gets there, or kept: in every field."""
    for operation in OPERATIONS:
        if operation.streams:
            continue  # these answer for ever
        for struct, in_query in ((operation.body, False), (operation.query, True)):
            for field in () if struct is None else struct.__struct_fields__:
                for value in ("a\0b", {"a\0b": "x"}, {"x": "a\0b"}):
                    answer = await _with(api, operation, field, value, in_query=in_query)
                    assert answer.status < 500, (operation.name, field, answer.data)


async def _with(api, operation, field, value, *, in_query):
    body = operation.example or {}
    path = path_of(operation)
    if in_query:
        return await api.call(operation.method, f"{path}?{field}=%00")
    data = json.dumps({**body, field: value}).encode()
    return await api.call(operation.method, path, data=data)
