"""The cookie of the page reaches what the page has buttons for; strangers cannot lock it out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from http.cookies import SimpleCookie
from typing import Any

import pytest

from fairlane.model.errors import Forbidden
from fairlane.service.operations.table import OPERATIONS
from fairlane.service.page_rights import ADDS, EDITS, permit_page

pytest.importorskip("uvicorn")
from fairlane.page.actions import ACTIONS
from tests.http.served import Reply, Server, serving

#: Everything that the forms of the page can send, by action.
FORMS: dict[str, dict[str, str]] = {
    "add": {"prompt": "x", "project": "web", "kind": "code", "agent": "claude", "group": "g",
            "title": "t", "priority": "10", "needs": "a, b"},
    "edit": {"task": "t1", "title": "t", "prompt": "x", "project": "web", "group": "g",
             "not_before": "", "priority": "10"},
    "cancel": {"task": "t1"}, "retry": {"task": "t1"}, "check": {"task": "t1"},
    "pause": {}, "resume": {}, "cap": {"scope": "all", "value": "3"},
}  # fmt: skip
#: What only a person at the machine may do.
REFUSED: dict[str, dict[str, Any]] = {
    "POST /tasks": {"tasks": [{"prompt": "x", "command": ["sh", "-c", "id"]}]},
    "POST /tasks?": {"tasks": [{"prompt": "x", "env": {"LD_PRELOAD": "/x.so"}}]},
    "POST /tasks??": {"tasks": [{"prompt": "x"}], "defaults": {"command": ["id"]}},
    "POST /tasks???": {"tasks": [{"prompt": "x"}], "recipe": "full"},
    "PATCH /tasks/t1": {"env": {"A": "b"}},
    "PATCH /tasks/t1?": {"command": ["id"]},
    "PATCH /policy": {"attempt.may_add.command": True},
    "POST /projects": {"name": "mine", "repo": "/tmp"},
    "PATCH /projects/web": {"repo": "/tmp"},
    "DELETE /projects/web": {},
    "GET /policy": {}, "POST /leases": {}, "POST /leases/L1/token": {}, "POST /links": {},
    "POST /reclaim": {}, "POST /clear": {}, "POST /groups": {"name": "g"},
    "PATCH /groups/g": {"priority": 1}, "POST /leases/L1/complete": {},
    "POST /decisions/1/replay": {}, "GET /decisions": {},
}  # fmt: skip


class Asked:
    """A queue that only notes what it is asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, object]]] = []

    async def ask(self, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        self.calls.append((name, arguments))
        return {"tasks": [{"id": "t1"}], "deferred": False, "checks": []}


def test_the_cookie_may_do_what_the_page_does():
    assert FORMS.keys() == ACTIONS.keys()
    queue = Asked()
    for name, form in FORMS.items():
        asyncio.run(ACTIONS[name](queue, form))  # type: ignore[arg-type]
    for call in queue.calls:
        permit_page(*call)
    sent = dict(queue.calls)
    assert set(sent["add"]["tasks"][0]) == set(ADDS)  # type: ignore[index]
    assert set(sent["edit"]["changes"]) == set(EDITS)  # type: ignore[call-overload]
    writes = {each.name for each in OPERATIONS.values() if each.page and not each.reads}
    assert writes == sent.keys(), "and it changes nothing else"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("home"), "--port", "0") as found:
        found.ask("POST", "/projects", {"name": "web"})
        found.ask("POST", "/groups", {"name": "g"})
        found.ask("POST", "/tasks", {"tasks": [{"id": "t1", "prompt": "x"}]})
        yield found


@pytest.fixture(scope="module")
def cookie(server: Server) -> str:
    reply = server.call("GET", server.ask("POST", "/links")["path"], token=None)
    (morsel,) = SimpleCookie(reply.headers["set-cookie"]).values()
    return f"{morsel.key}={morsel.value}"


def ask(server: Server, cookie: str, method: str, path: str, body: object = None) -> Reply:
    origin = f"http://127.0.0.1:{server.port}"
    sent = body if method != "GET" and isinstance(body, dict) else None
    return server.call(method, path, sent, token=None, Cookie=cookie, Origin=origin)


@pytest.mark.parametrize("asked", REFUSED)
def test_the_cookie_may_do_nothing_else(server: Server, cookie: str, asked: str):
    method, _, path = asked.rstrip("?").partition(" ")
    reply = ask(server, cookie, method, f"/api/v1{path}", REFUSED[asked])
    assert (reply.status, reply.code) == (403, "forbidden"), reply
    assert "not with the cookie of the page" in reply.document["error"]["message"]


def test_tools_and_metrics_are_not_for_browsers(server: Server, cookie: str):
    for method, path in (("POST", "/mcp"), ("POST", "/mcp/"), ("GET", "/metrics")):
        assert ask(server, cookie, method, path, {}).status == 403, path


def test_every_operation_is_decided_for_the_page():
    for name, operation in OPERATIONS.items():
        if operation.page:
            permit_page(name, operation.example if operation.reads else {})
        else:
            with pytest.raises(Forbidden):
                permit_page(name, operation.example)


@pytest.mark.parametrize("path", ["/", "/tasks", "/api/v1/status", "/page/known"])
def test_another_port_cannot_lock_the_browser_out(server: Server, cookie: str, path: str):
    """It can set a cookie of our name for a path; a browser then sends both, its own first."""
    name = cookie.partition("=")[0]
    for both in (f"{name}=bad; {cookie}", f"{name}=; {name}=bad; {cookie}; {name}=worse"):
        assert ask(server, both, "GET", path).status == 200
    assert ask(server, f"{name}=bad", "GET", path).status == 401


def test_leaving_ends_the_cookie_beside_a_foreign_one(server: Server):
    reply = server.call("GET", server.ask("POST", "/links")["path"], token=None)
    (morsel,) = SimpleCookie(reply.headers["set-cookie"]).values()
    own = f"{morsel.key}={morsel.value}"
    assert ask(server, f"{morsel.key}=bad; {own}", "POST", "/logout", {}).status == 303
    assert ask(server, own, "GET", "/api/v1/status").status == 401


@pytest.mark.parametrize("fields", [11, 50, 5000])
def test_many_fields_without_a_token_are_no_bug_of_ours(server: Server, fields: int):
    query = "&".join(f"f{number}=x" for number in range(fields))
    reply = server.call("GET", f"/open?{query}", token=None)
    assert reply.status == (422 if fields > 100 else 401), reply
    assert server.call("GET", "/open?key=%ff%fe", token=None).status == 422


def test_many_fields_of_a_view_are_no_bug_either(server: Server, cookie: str):
    query = "%26".join(f"f{number}%3Dx" for number in range(50))
    assert ask(server, cookie, "GET", f"/page/live?view=/tasks%3F{query}").status == 404
    assert ask(server, cookie, "GET", "/page/live?view=//[x").status == 404


def test_a_change_of_nothing_is_refused(server: Server):
    for path in ("/policy", "/tasks/t1", "/projects/web", "/groups/g"):
        for body in (b"", b"{}"):
            reply = server.call("PATCH", f"/api/v1{path}", body, Content_Type="application/json")
            assert (reply.status, reply.code) == (422, "invalid"), (path, body)
            assert "there is nothing to change" in reply.document["error"]["message"]
