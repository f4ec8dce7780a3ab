"""Routes: every operation answers as its document says, and every error as the protocol says."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema  # type: ignore[import-untyped]
import pytest

from fairlane.http.messages import answer_error
from fairlane.http.openapi import ERRORS, openapi, shown_path
from fairlane.model.errors import TryLater
from fairlane.service.operations.schemas import DOCUMENTS
from fairlane.service.operations.table import OPERATIONS, Operation
from tests.http.served import Reply, Server, serving

#: What the examples of the table speak of, and what each operation is asked in its place.
SAID: dict[str, dict[str, Any]] = {
    "complete": {"lease": "L1"}, "heartbeat": {"lease": "L1"}, "report": {"lease": "L1"},
    "release": {"lease": "L2"}, "worker_show": {"name": "box1"}, "logs": {"task": "t1"},
    "transcript": {"task": "t1"},
    "retry": {"ids": ["t1"]}, "edit": {"ids": ["t4"]}, "cancel": {"ids": ["t4"]},
    "group_show": {"name": "release"},
}  # fmt: skip
#: Asked first, in this order; the rest as the table has them; these last.
FIRST = ("project_add", "group_add", "add", "lease", "heartbeat", "report", "complete")
LAST = ("edit", "retry", "cancel", "clear", "project_remove")


def send(server: Server, operation: Operation, arguments: dict[str, Any]) -> Reply:
    """The operation as the table says that it is sent."""
    held, path = dict(arguments), operation.path
    for place in operation.places:
        value = held.pop(place)
        one = value[0] if isinstance(value, list) else value
        path = path.replace(f"{{{place}}}", quote(str(one), safe=""))
    if operation.method in ("GET", "DELETE"):
        query = f"?{urlencode(held, doseq=True)}" if held else ""
        return server.call(operation.method, f"/api/v1{path}{query}")
    rest = held.pop(operation.rest, {}) if operation.rest else {}
    return server.call(operation.method, f"/api/v1{path}", held | rest)


#: What is done is not put back; what was done elsewhere is not checked here.
NOT_NOW = {"retry": "refused", "check": "elsewhere"}


#: It has no repository, and no checks.
ABSENT = {"diff": "no_work", "check_log": "unknown_check"}


def test_every_operation_answers_as_its_document_says(server: Server):
    server.ask("POST", "/tasks", {"tasks": [{"id": f"t{n}", "prompt": "x"} for n in range(1, 5)]})
    server.ask("POST", "/leases", {"limit": 2, "worker": "box1"})
    middle = [name for name in OPERATIONS if name not in FIRST + LAST]
    names = [*FIRST, *middle, *LAST]
    assert sorted(names) == sorted(OPERATIONS)
    for name in names:
        operation = OPERATIONS[name]
        reply = send(server, operation, dict(operation.example) | SAID.get(name, {}))
        if name in NOT_NOW:
            assert (reply.status, reply.code) == (409, NOT_NOW[name])
            continue
        if name in ABSENT:
            assert (reply.status, reply.code) == (404, ABSENT[name])
            continue
        assert reply.status == 200, (name, reply)
        assert reply.headers["content-type"] == "application/json"
        jsonschema.validate(reply.document, DOCUMENTS[operation.gives])


def test_every_answer_has_a_schema():
    assert {each.gives for each in OPERATIONS.values()} | {"Error", "LeaseToken", "Link"} == set(
        DOCUMENTS
    )


def test_the_openapi_document_fits_itself(server: Server):
    told = server.ask("GET", "/openapi.json")
    assert told == json.loads(json.dumps(openapi()))
    schemas = told["components"]["schemas"]
    paths = {(path, method) for path, found in told["paths"].items() for method in found}
    for operation in OPERATIONS.values():
        for path in (operation.path, operation.many):
            assert path is None or (shown_path(path), operation.method.lower()) in paths
    for found in told["paths"].values():
        for described in found.values():
            content = described["responses"]["200"]["content"]["application/json"]
            name = content["schema"]["$ref"].rpartition("/")[2]
            jsonschema.validate(content["example"], schemas[name])
            assert {str(each) for each in ERRORS} < set(described["responses"])
            if "requestBody" in described:
                body = described["requestBody"]["content"]["application/json"]
                jsonschema.validate(body["example"], body["schema"])


def test_several_at_once_and_flat_bodies(server: Server):
    server.ask(
        "POST", "/tasks", {"tasks": [{"id": "m1"}, {"id": "m2"}], "defaults": {"prompt": "x"}}
    )
    edited = server.ask("PATCH", "/tasks", {"ids": ["m1", "m2"], "priority": 3})
    assert [row["priority"] for row in edited["tasks"]] == [3, 3]
    edited = server.ask("PATCH", "/tasks/m1", {"priority": 4})
    assert [row["priority"] for row in edited["tasks"]] == [4]
    gone = server.ask("POST", "/cancel", {"ids": ["m1", "m2"], "reason": "no"})
    assert [row["status"] for row in gone["tasks"]] == ["canceled", "canceled"]
    assert server.call("GET", "/api/v1/tasks/cancel").status == 404, "a task may have this name"


def test_pages_with_cursors(server: Server):
    server.ask("POST", "/tasks", {"tasks": [{"id": f"p{n}", "group": "pages"} for n in range(5)]})
    found: list[str] = []
    cursor: int | None = 0
    while cursor is not None:
        page = server.ask("GET", f"/tasks?group=pages&limit=2&cursor={cursor}")
        found += [row["id"] for row in page["tasks"]]
        cursor = page["cursor"]
    assert found == [f"p{n}" for n in range(5)]
    both = server.ask("GET", "/tasks?status=queued&status=done&group=pages")
    assert both == server.ask("GET", "/tasks?status=queued,done&group=pages")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/tasks/nobody", 404, "unknown_task"),
        ("GET", "/api/v1/projects/nobody", 404, "unknown_project"),
        ("POST", "/api/v1/leases/L999/heartbeat", 404, "unknown_lease"),
        ("POST", "/api/v1/leases/L999/token", 404, "unknown_lease"),
        ("GET", "/api/v1/decisions/99999", 404, "not_found"),
        ("GET", "/api/v1/nothing", 404, "no_such_path"),
        ("GET", "/api/v1", 404, "no_such_path"),
        ("GET", "/nothing", 404, "no_such_path"),
        ("PUT", "/api/v1/tasks", 405, "method"),
        ("DELETE", "/metrics", 405, "method"),
        ("TRACE", "/api/v1/status", 405, "method"),
        ("DELETE", "/api/v1/projects/default", 409, "refused"),
        ("GET", "/api/v1/tasks?limit=0", 422, "invalid"),
        ("GET", "/api/v1/tasks?limit=1&limit=2", 422, "invalid"),
        ("GET", "/api/v1/tasks?limit=%D9%A1", 422, "invalid"),
        ("GET", "/api/v1/tasks?nothing=1", 422, "invalid"),
        ("GET", "/api/v1/tasks?project=%ff", 422, "invalid"),
        ("GET", "/api/v1/tasks/t1?task=t2", 422, "invalid"),
        ("GET", "/api/v1/status?x=1", 422, "invalid"),
        ("POST", "/api/v1/pause?scope=all", 422, "invalid"),
        ("GET", "/api/v1/decisions/first", 422, "invalid"),
        ("GET", "/api/v1/tasks/t1/logs?stream=secret", 422, "invalid"),
        ("GET", "/api/v1/events?cursor=-1", 422, "invalid"),
    ],
)
def test_errors_have_their_status(server: Server, method: str, path: str, status: int, code: str):
    reply = server.call(method, path)
    assert (reply.status, reply.code) == (status, code)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "the body is no object"),
        (b'"x"', "the body is no object"),
        (b"{", "the body is not JSON"),
        (b'{"limit": 1, "limit": 2}', "key 'limit' is given twice"),
        (b'{"limit": NaN}', "NaN is no number"),
        (b'{"limit": 1e999}', "1e999 is beyond all numbers"),
        (b'{"limit": ' + b"9" * 5000 + b"}", "the body is not JSON"),
        (b'{"worker": "\\ud800"}', "half of a surrogate pair"),
        (b'{"worker": "\xff"}', "not UTF-8"),
        (b"[" * 100_000, "nested more than 64 deep"),
        (b'{"limit": ' + b"[" * 80 + b"]" * 80 + b"}", "nested more than 64 deep"),
        (b'{"limit": "1"}', "limit: not a whole number: '1'"),
        (b'{"limit": true}', "limit: not a whole number: True"),
        (b'{"limt": 1}', "unknown argument 'limt'"),
        (b'{"limt": null}', "unknown argument 'limt'"),
        (b'{"wait": "soon"}', "soon"),
        (b'{"worker": "a\\u0000b"}', "null character"),
    ],
)  # fmt: skip
def test_bad_bodies_are_named(server: Server, body: bytes, said: str):
    before = server.ask("GET", "/events?limit=1")["cursor"]
    reply = server.call("POST", "/api/v1/leases", body, Content_Type="application/json")
    assert reply.status == 422
    assert said in reply.document["error"]["message"]
    assert server.ask("GET", "/events?limit=1")["cursor"] == before


def test_only_json_is_read(server: Server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        reply = server.call("POST", "/api/v1/pause", b'{"scope": "all"}', Content_Type=kind)
        assert (reply.status, reply.code) == (415, "content_type")
    kind = "application/json; charset=utf-8"
    assert server.call("POST", "/api/v1/resume", b"{}", Content_Type=kind).status == 200
    assert server.call("POST", "/api/v1/resume").status == 200, "no body is no argument"


def test_what_a_path_takes(server: Server):
    told = server.call("OPTIONS", "/api/v1/tasks")
    assert (told.status, told.headers["allow"]) == (204, "GET, HEAD, OPTIONS, PATCH, POST")
    refused = server.call("DELETE", "/api/v1/tasks")
    assert refused.headers["allow"] == told.headers["allow"]
    for path, described in openapi()["paths"].items():
        methods = {method.upper() for method in described} | {"OPTIONS"}
        methods |= {"HEAD"} & {"HEAD" if method == "GET" else "" for method in methods}
        for method in ("OPTIONS", "PUT", "TRACE"):
            reply = server.call(method, f"/api/v1{path.replace('{', '').replace('}', '')}")
            assert reply.status == (204 if method == "OPTIONS" else 405), (method, path)
            assert reply.headers["allow"] == ", ".join(sorted(methods)), (method, path)
    whole, only_head = server.call("GET", "/healthz"), server.call("HEAD", "/healthz")
    assert (only_head.status, only_head.body) == (200, b"")
    assert only_head.headers["content-length"] == whole.headers["content-length"]


@pytest.mark.slow
def test_deferred_work_comes_later(tmp_path):
    (tmp_path / "policy.toml").write_text("backpressure.hard = 1\ncaps.all = 1\n")
    with serving(tmp_path) as server:
        tasks = {"tasks": [{"prompt": "a"}, {"prompt": "b"}, {"prompt": "c"}]}
        reply = server.call("POST", "/api/v1/tasks", tasks)
        assert reply.status == 429
        assert reply.headers["retry-after"] == "30"
        assert reply.document["deferred"] is True
        assert server.ask("GET", "/status")["queued"]["total"] == 0
        (tmp_path / "policy.toml").write_text("nonsense = 1\n")
        broken = server.call("POST", "/api/v1/leases", {"limit": 1})
        assert (broken.status, broken.code) == (422, "invalid_policy")
        assert server.call("GET", "/readyz", token=None).status == 200
        for file in tmp_path.glob("fairlane.db*"):
            file.write_bytes(b"gone")
        assert server.call("GET", "/healthz", token=None).document["ok"] is True
        unready = server.call("GET", "/readyz", token=None)
        assert unready.status == 503
        assert unready.code


def test_what_nobody_foresaw_is_told_to_the_log_alone(caplog):
    found = answer_error(ValueError("a secret"))
    assert found.status == 500
    assert json.loads(found.body)["error"]["code"] == "internal"
    assert b"secret" not in found.body
    assert "a secret" in caplog.text
    assert "Traceback" in caplog.text or "ValueError" in caplog.text


def test_busy_is_told_with_when_to_come_again():
    found = answer_error(TryLater("the store is busy", "Ask again.", "busy"))
    assert found.status == 503
    assert (b"retry-after", b"1") in found.headers
    assert json.loads(found.body)["error"]["code"] == "busy"
