"""The page's addresses without a browser: what they answer, and what they refuse."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from fairlane.app import open_context
from fairlane.app.shared_queue import SharedQueue
from fairlane.engine.end_attempt import Report
from fairlane.model.project import WorkerRow
from fairlane.page import CSP, mount
from fairlane.service import projects, queue, tasks
from tests import holder

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def client(tmp_path):
    context = open_context(tmp_path)
    tasks.add(context, [{"id": "a", "prompt": "first"}])
    context.store.close()
    queue = SharedQueue(lambda: open_context(tmp_path))

    class Lifespan:
        async def __aenter__(self) -> None:
            await queue.open()

        async def __aexit__(self, *_: object) -> None:
            await queue.close()

    app = Starlette(lifespan=lambda app: Lifespan())
    mount(app, queue)
    with TestClient(app) as found:
        yield found


@pytest.mark.parametrize("path", ["/", "/tasks", "/task/a", "/groups", "/?span=1h", "/?span=no"])
def test_views_answer_with_nothing_from_elsewhere(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == CSP
    assert "http://" not in answer.text
    assert "https://" not in answer.text
    assert " style=" not in answer.text
    assert "<script>" not in answer.text


def test_nothing_inline_is_allowed():
    assert "unsafe" not in CSP
    assert "default-src 'none'" in CSP


@pytest.mark.parametrize("name", ["page.css", "page.js", "theme.js", "icon.svg"])
def test_files_come_from_here_alone(client, name):
    answer = client.get(f"/page/static/{name}")
    assert answer.status_code == 200
    assert "url(" not in answer.text
    assert "@import" not in answer.text


@pytest.mark.parametrize("name", ["..%2fhtml.py", "html.py", "%2e%2e/routes.py", "page.css%00"])
def test_no_other_file_is_served(client, name):
    assert client.get(f"/page/static/{name}").status_code == 404


@pytest.mark.parametrize("path", ["/task/nobody", "/task/..%2f..%2ftoken", "/page/live?view=/x"])
def test_what_is_not_there_is_not_found(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/nope"), ("POST", "/tasks"), ("GET", "/x/y")]
)
def test_what_leads_nowhere_says_so_to_people_and_programs(client, method, path):
    answer = client.request(method, path)
    assert (answer.status_code, answer.json()["schema"]) == (404, "fairlane/1")
    assert answer.json()["error"]["code"] == "not_found"
    assert f"there is no {method} {path} here" in answer.json()["error"]["message"]
    shown = client.request(method, path, headers={"Accept": "text/html"})
    assert shown.status_code == 404
    assert "That did not work" in shown.text
    assert 'href="/"' in shown.text


def test_a_queue_that_is_full_takes_no_task_and_says_so(tmp_path, client):
    (tmp_path / "policy.toml").write_text("caps.all = 0\nbackpressure.soft = 1\n")
    told = client.post("/page/do/add", json={"prompt": "one more"}).json()["message"]
    assert told.startswith("Added t1. the queue is 2 deep")
    (tmp_path / "policy.toml").write_text("caps.all = 0\nbackpressure.hard = 1\n")
    answer = client.post("/page/do/add", json={"prompt": "one more"})
    assert answer.status_code == 503
    error = answer.json()["error"]
    assert (error["code"], bool(error["message"]), bool(error["hint"])) == ("deferred", True, True)


def test_a_title_without_end_is_no_wall(tmp_path, client):
    context = open_context(tmp_path)
    tasks.add(context, [{"id": "long", "prompt": "x", "title": "W" * 10_000}])
    context.store.close()
    shown = client.get("/task/long").text
    assert f"<h1>{'W' * 200}…</h1>" in shown
    assert f"{'W' * 10_000}</pre>" in shown, "the whole of it stands beside the prompt"


def test_many_pauses_leave_room_for_the_rest(tmp_path, client):
    context = open_context(tmp_path)
    for number in range(6):
        queue.pause(context, f"kind:k{number}")
    context.store.close()
    notices = client.get("/").text.partition('id="notice"')[2].partition("</section>")[0]
    assert notices.count('class="notice paused"') == 5
    assert "2 more scopes paused: see " in notices


def test_many_projects_share_one_card(tmp_path, client):
    context = open_context(tmp_path)
    for number in range(30):
        projects.add_project(context, f"p{number:02}", {"weight": 2})
    records = [{"id": f"x{number}", "project": f"p{number:02}"} for number in range(30)]
    tasks.add(context, records)
    context.policy_file.write_text("caps.all = 40\n")
    for each in holder.lease(context, 40, "box")["leases"]:
        holder.complete(context, [each["lease"]], Report((900, 100, 0, 0)))
    context.store.close()
    card = client.get("/").text.partition('id="shares"')[2].partition("</section>")[0]
    assert card.count("<li") == 10
    assert "and 21 more" in card, "with the default one"


def test_numbers_that_seem_to_differ_say_why(tmp_path, client):
    (tmp_path / "policy.toml").write_text(
        'preset = "fair-share"\ncaps.all = 6\n'
        '[[budget]]\nscope = "all"\ntokens = 500\nwindow = "24h"\n'
    )
    context = open_context(tmp_path)
    with context.store.write() as tx:
        tx.put(WorkerRow("box", "box", 4, (), context.now()))
    holder.lease(context, 1, "box")
    context.store.close()
    shown = client.get("/").text
    assert "the cap allows 6, the workers have fewer slots" in shown
    assert "0 + 100k reserved of 500" in shown
    (tmp_path / "policy.toml").write_text('preset = "fare-share"\n')
    assert "deferred · last good" in client.get("/").text


@pytest.mark.parametrize(
    ("body", "headers", "code", "message"),
    [
        (b"{}", {}, 422, "send JSON"),
        (b"{", JSON, 422, "not JSON"),
        (b"[1]", JSON, 422, "not an object of texts"),
        (b'{"prompt": 1}', JSON, 422, "not an object of texts"),
        (b'{"prompt": ""}', JSON, 422, "prompt is empty"),
        (b'{"prompt": "x", "priority": "high"}', JSON, 422, "priority: not a whole number"),
        (b'{"prompt": "x", "needs": "nobody"}', JSON, 409, "nobody"),
        (b'"' + b"x" * 300_000 + b'"', JSON, 422, "that is too long"),
    ],
)
def test_a_bad_form_is_refused_with_what_and_what_now(client, body, headers, code, message):
    answer = client.post("/page/do/add", content=body, headers=headers)
    assert answer.status_code == code, answer.text
    assert message in answer.json()["error"]["message"]
    assert answer.json()["error"]["hint"]


@pytest.mark.parametrize(
    ("action", "given", "message"),
    [
        ("fly", {}, "there is no such action"),
        ("cap", {"scope": 'all"=1', "value": "2"}, "no cap can be for"),
        ("cap", {"scope": "all", "value": "-1"}, "caps.all"),
        ("retry", {"task": "nobody"}, "nobody"),
        ("edit", {"task": "a"}, "nothing was changed"),
        ("pause", {"scope": "moon:full"}, "moon"),
    ],
)
def test_what_cannot_be_done_is_told(client, action, given, message):
    answer = client.post(f"/page/do/{action}", json=given)
    assert answer.status_code in (404, 409, 422), answer.text
    assert message in answer.json()["error"]["message"]


def test_a_log_of_nobody_and_of_no_attempt(client):
    assert client.get("/page/log?task=nobody").status_code == 404
    assert client.get("/page/log?task=a&attempt=99999999999999999999").status_code == 422
    assert client.get("/page/log?task=a&stream=other").status_code in (404, 422)


def test_names_for_forms_are_offered(client):
    known = client.get("/page/known").json()
    assert known["projects"] == ["default"]
    assert "all" in known["caps"]
    assert "demo" in known["agents"]
