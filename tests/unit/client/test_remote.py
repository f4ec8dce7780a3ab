"""A server elsewhere: what it is asked, and what becomes of its answers."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from fairlane.client.remote import Remote
from fairlane.client.requests import request_of
from fairlane.model.errors import FairlaneError, Invalid, NotFound, Refused, TryLater
from fairlane.service.operations.table import OPERATIONS
from tests.unit.client.scripted import TOKEN, Asked, Reply, Scripted

OK = {"schema": "fairlane/1", "ok": True}


@pytest.fixture
def remote():
    """Asks a server; what it keeps open ends with the test."""
    with ExitStack() as held:
        yield lambda server: held.enter_context(Remote(server.url, TOKEN))


def error(code: str, message: str = "no", hint: str = "do") -> dict[str, object]:
    told = {"code": code, "message": message, "hint": hint}
    return {"schema": "fairlane/1", "error": told}


@pytest.mark.parametrize(
    ("name", "arguments", "method", "target", "body"),
    [
        ("status", {}, "GET", "/status", None),
        ("show", {"task": "a/../b?c d"}, "GET", "/tasks/a%2F..%2Fb%3Fc%20d", None),
        ("list", {"status": ["queued", "done"], "cursor": 0, "project": None}, "GET",
         "/tasks?status=queued&status=done&cursor=0", None),
        ("add", {"tasks": [{"id": "ü"}], "chain": True}, "POST", "/tasks",
         {"tasks": [{"id": "ü"}], "chain": True}),
        ("edit", {"ids": ("a",), "changes": {"title": None}}, "PATCH", "/tasks/a",
         {"title": None}),
        ("edit", {"ids": ["a", "b"], "changes": {"title": "t"}}, "PATCH", "/tasks",
         {"ids": ["a", "b"], "title": "t"}),
        ("cancel", {"group": "g"}, "POST", "/cancel", {"group": "g"}),
        ("cancel", {"ids": [], "group": "g"}, "POST", "/cancel", {"ids": [], "group": "g"}),
        ("retry", {"ids": ["a"]}, "POST", "/tasks/a/retry", {}),
        ("complete", {"lease": "L1", "cost": 0.5}, "POST", "/leases/L1/complete", {"cost": 0.5}),
        ("project_add", {"name": "web", "values": {"weight": 2}}, "POST", "/projects",
         {"name": "web", "weight": 2}),
        ("project_add", {"name": "web", "values": None}, "POST", "/projects", {"name": "web"}),
        ("project_remove", {"name": "web"}, "DELETE", "/projects/web", None),
        ("policy_set", {"changes": {"caps.all": 3}}, "PATCH", "/policy", {"caps.all": 3}),
        ("replay", {"number": 3}, "POST", "/decisions/3/replay", {}),
    ],
)  # fmt: skip
def test_the_table_says_how_it_is_asked(name, arguments, method, target, body):
    asked = request_of(name, arguments)
    assert (asked.method, asked.target) == (method, target)
    assert (None if asked.body is None else json.loads(asked.body)) == body


def test_only_what_changes_nothing_is_asked_twice():
    twice = {name for name, each in OPERATIONS.items() if request_of(name, each.example).repeatable}
    assert twice == {name for name, each in OPERATIONS.items() if each.reads} | {"project_remove"}


def test_what_cannot_be_asked_is_named():
    with pytest.raises(Invalid, match="no operation 'lst'") as refused:
        request_of("lst", {})
    assert refused.value.hint == "Did you mean 'list'?"
    with pytest.raises(Invalid, match="show: task is missing"):
        request_of("show", {"task": None})
    with pytest.raises(Invalid, match="cannot be sent as JSON"):
        request_of("add", {"tasks": [{"prompt": object()}]})


def test_the_token_stands_in_its_header_alone(remote):
    with Scripted(OK) as server:
        assert remote(server).ask("status") == OK
        with Remote(f"{server.url}/api/v1/") as other:
            assert other.ask("status") == OK
    asked, without = server.asked
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.path == without.path == "/api/v1/status"
    assert TOKEN not in asked.path + asked.body.decode()
    assert "authorization" not in without.headers


@pytest.mark.parametrize(
    ("status", "kind", "code", "exit_code"),
    [
        (404, NotFound, "unknown_task", 1),
        (409, Refused, "refused", 1),
        (422, Invalid, "invalid", 2),
        (413, Invalid, "too_large", 2),
        (429, TryLater, "deferred", 75),
        (503, TryLater, "busy", 75),
        (401, Refused, "no_token", 1),
        (403, Refused, "foreign_host", 1),
        (500, FairlaneError, "internal", 1),
    ],
)
def test_errors_are_those_of_the_server(remote, status, kind, code, exit_code):
    with (
        Scripted(Reply(error(code, "what happened"), status)) as server,
        pytest.raises(FairlaneError) as refused,
    ):
        remote(server).ask("show", task="a")
    told = refused.value
    assert type(told) is kind
    assert (told.error_code, told.message, told.exit_code) == (code, "what happened", exit_code)
    assert told.hint


def test_without_a_good_token_it_is_said_where_one_is(remote):
    with Scripted(Reply(error("no_token"), 401)) as server, pytest.raises(Refused) as refused:
        remote(server).ask("status")
    assert "FAIRLANE_TOKEN" in refused.value.hint


def test_a_deferred_add_is_an_answer(remote):
    deferred = {"schema": "fairlane/1", "tasks": [], "deferred": True, "message": "m", "hint": "h"}
    with Scripted(Reply(deferred, 429)) as server:
        assert remote(server).ask("add", tasks=[{}]) == deferred


def test_nobody_there():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(TryLater, match=f"{url} cannot be reached") as refused:
            Remote(url).ask("status")
    assert refused.value.error_code == "unreachable"
    assert "fairlane up" in refused.value.hint


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(b"<html>", 200), "not_fairlane"),
        (Reply({"other": 1}, 200), "not_fairlane"),
        (Reply([1], 404), "not_fairlane"),
        (Reply(b"", 302, {"Location": "http://example.org/"}), "redirected"),
        (Reply(OK | {"error": {}}, 307, {"Location": "/x"}), "error"),
        (Reply(b"bad gateway", 502), "unreachable"),
    ],
)
def test_what_is_not_fairlane_is_named_and_redirects_are_not_followed(remote, reply, code):
    with Scripted(reply) as server, pytest.raises(FairlaneError) as refused:
        remote(server).ask("status")
    assert refused.value.error_code == code
    assert len(server.asked) == 1


def test_a_connection_is_kept_and_one_that_was_dropped_is_opened_again(remote):
    with Scripted(OK, Reply(OK, close=True), OK) as server:
        held = remote(server)
        for _ in range(2):
            held.ask("status")
        while not dropped(held):  # the server's end takes a moment to arrive
            pass
        held.ask("add", tasks=[{}])  # not safe to repeat, and not repeated
    first, second, third = (asked.peer for asked in server.asked)
    assert first == second != third


def dropped(held: Remote) -> bool:
    import select

    (connection,) = held._wire._idle
    return bool(select.select([connection.sock], [], [], 0.01)[0])


def test_a_read_that_was_cut_off_is_asked_once_more(remote):
    with Scripted(OK, Reply(drop=True), OK) as server:
        held = remote(server)
        held.ask("status")
        assert held.ask("status") == OK
    assert [asked.method for asked in server.asked] == ["GET"] * 3


def test_a_change_that_was_cut_off_is_not_repeated(remote):
    with Scripted(OK, Reply(drop=True), OK) as server:
        held = remote(server)
        held.ask("status")
        with pytest.raises(TryLater, match="did not answer") as lost:
            held.ask("lease", limit=1)
    assert len(server.asked) == 2
    assert lost.value.hint == "It may have been done: look before you ask again."


def test_a_read_that_is_always_cut_off_ends(remote):
    with Scripted(Reply(drop=True)) as server, pytest.raises(TryLater, match="did not answer"):
        remote(server).ask("status")


def page(rows: list[int], cursor: int | None) -> dict[str, object]:
    return {"schema": "fairlane/1", "tasks": [{"id": row} for row in rows], "cursor": cursor}


def test_a_list_without_a_limit_is_everything(remote):
    with Scripted(page([1, 2], 2), page([3], None)) as server:
        held = remote(server)
        assert held.ask("list", status=["queued"]) == page([1, 2, 3], None)
    first, second = (asked.path for asked in server.asked)
    assert first == "/api/v1/tasks?status=queued&limit=1000"
    assert second == "/api/v1/tasks?status=queued&cursor=2&limit=1000"


def test_a_list_with_a_limit_ends_there(remote):
    with Scripted(page(list(range(1000)), 1000), page([1000, 1001], 1002)) as server:
        held = remote(server)
        found = held.ask("list", limit=1002)
    assert (len(found["tasks"]), found["cursor"]) == (1002, 1002)
    queries = [asked.path.partition("?")[2] for asked in server.asked]
    assert queries == ["limit=1000", "cursor=1000&limit=2"]


def test_a_long_wait_is_asked_in_parts(remote):
    none = {"schema": "fairlane/1", "leases": [], "reason": "none"}
    some = none | {"leases": [{"lease": "L1"}]}
    with Scripted(none, some) as server:
        held = remote(server)
        assert held.ask("lease", limit=1, wait="5m") == some
    waits = [json.loads(asked.body)["wait"] for asked in server.asked]
    assert waits == [60.0, 60.0]


def frames(*numbers: int) -> bytes:
    told = [json.dumps({"number": each, "kind": "added", "task": f"t{each}"}) for each in numbers]
    lines = [f"id: {each}\nevent: added\ndata: {text}\n\n" for each, text in zip(numbers, told)]  # noqa: B905
    return ("retry: 1000\n: fairlane\n\n" + "".join(lines)).encode()


def test_a_stream_goes_on_where_it_broke(remote):
    stream = {"Content-Type": "text/event-stream; charset=utf-8"}

    def script(asked: Asked) -> Reply:
        after = int(asked.headers["last-event-id"])
        if len(server.asked) == 2:
            return Reply(drop=True)
        cut = frames(after + 1, after + 2) + b"id: 9\nevent: added\ndata: {"  # not a whole one
        return Reply(cut, 200, stream)

    with Scripted(script=script) as server:
        events = remote(server).events(4)
        assert [next(events)["number"] for _ in range(4)] == [5, 6, 7, 8]
        events.close()
    assert [asked.headers["last-event-id"] for asked in server.asked] == ["4", "6", "6"]
    assert server.asked[0].headers["accept"] == "text/event-stream"


def test_a_stream_of_one_task_and_a_stream_that_is_refused(remote):
    with Scripted(Reply(frames(1, 2, 3), 200, {"Content-Type": "text/event-stream"})) as server:
        events = remote(server).events(0, "t2")
        assert next(events)["task"] == "t2"
        events.close()
    assert server.asked[0].path == "/api/v1/events?task=t2"
    with Scripted(Reply(error("no_token"), 401)) as server, pytest.raises(Refused):
        next(remote(server).events(0))


def test_a_log_is_read_to_its_end_and_followed_until_it_has_ended(remote):
    def part(text: str, place: int, ended: bool) -> dict[str, object]:
        return {"schema": "fairlane/1", "attempt": 2, "text": text, "next": place, "ended": ended}

    pages = [part("one\n", 4, False), part("", 4, False), part("two\n", 8, True), part("", 8, True)]
    with Scripted(*pages) as server:
        held = remote(server)
        assert list(held.log("t1", None, "stdout", follow=True)) == ["one\n", "two\n"]
    paths = [asked.path.partition("?")[2] for asked in server.asked]
    assert paths[0] == "stream=stdout&offset=0"
    assert paths[1:] == [f"attempt=2&stream=stdout&offset={each}" for each in (4, 4, 8)]
    with Scripted(part("one\n", 4, False), part("", 4, False)) as server:
        held = remote(server)
        assert list(held.log("t1", 2, "stdout", follow=False)) == ["one\n"]


def test_many_threads_ask_at_once(remote):
    def script(asked: Asked) -> Reply:
        return Reply({"schema": "fairlane/1", "task": asked.path.rpartition("/")[2]})

    with Scripted(script=script) as server, ThreadPoolExecutor(8) as threads:
        held = remote(server)
        names = [f"t{number}" for number in range(200)]
        answers = list(threads.map(lambda name: held.ask("show", task=name)["task"], names))
    assert answers == names
    assert len({asked.peer for asked in server.asked}) <= 8
