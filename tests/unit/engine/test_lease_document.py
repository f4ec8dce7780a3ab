"""The lease document: everything that a holder needs, and nothing that is not for it."""

from __future__ import annotations

import json

import pytest

from fairlane.engine import attempts
from fairlane.engine.end_attempt import Ending, Report
from fairlane.engine.look.workers import Asker
from fairlane.model.documents.tasks import LeaseDocument, LocalLeaseDocument
from fairlane.model.event import Happening
from fairlane.model.record import changed
from fairlane.model.task import Task
from fairlane.service import projects, pull, tasks
from fairlane.settings import host_name
from fairlane.store.base import Placed
from tests.sessions import claude_keeps, codex_keeps
from tests.unit.contexts import TestContext

HERE = Asker("box", None, "process", host_name())
LOCAL = LocalLeaseDocument.__annotations__.keys() - LeaseDocument.__annotations__.keys()


def here(office):
    """The only lease that this host gets now."""
    (document,) = attempts.lease(office.context, HERE).documents
    return document


def fail(office, lease, session=None, tokens=(0, 0, 0, 0)):
    report = Report(tokens, detail="the tests are red")
    attempts.finish(office.context, {lease: Ending(Happening.FAILED, report, session)})


@pytest.fixture
def quick(office):
    office.policy('retry.base = "0s"\n')
    return office


def test_it_has_what_the_task_its_project_and_the_policy_say(office, tmp_path):
    office.policy('attempt.timeout = "2h"\nattempt.silence = "90s"\n')
    projects.add_project(office.context, "p", {"repo": str(tmp_path), "base": "main"})
    task = {
        "id": "a", "project": "p", "title": "Mend", "prompt": "Mend it", "agent": "claude",
        "merge": "merge", "artifacts": ["out.txt"], "meta": {"n": 1}, "vars": {"x": "y"},
        "env": {"SECRET": "s3"},
    }  # fmt: skip
    (tmp_path / "out.txt").touch()
    office.add(task)
    document = here(office)
    wanted = {
        "task": "a", "project": "p", "agent": "claude", "prompt": "Mend it", "session": None,
        "timeout": 7200.0, "silence": 90.0, "repo": str(tmp_path), "base": "main",
        "branch": "fairlane/a", "merge": "merge", "artifacts": ["out.txt"], "meta": {"n": 1},
        "vars": {"x": "y"}, "start": [], "checks": [], "url": None, "token": None,
        "env": {"SECRET": "s3"}, "executor": "process", "direct": False, "pool": "anthropic",
        "handle": None, "baseline": None, "problem": "",
    }  # fmt: skip
    assert {name: document[name] for name in wanted} == wanted
    assert document["argv"][0] == "claude"


def test_a_holder_outside_gets_nothing_that_stays_on_this_host(office):
    office.add({"id": "a", "command": ["make"], "env": {"SECRET": "s3"}, "timeout": "30s"})
    (document,) = pull.lease(office.context)["leases"]
    assert {"env", "handle", "run"} <= LOCAL
    assert not LOCAL & document.keys()
    assert "s3" not in json.dumps(document)
    assert (document["argv"], document["timeout"], document["repo"]) == (["make"], 30.0, None)


def test_a_fresh_retry_gets_the_last_error(quick):
    quick.add({"id": "a", "prompt": "Mend it", "session": "fresh"})
    fail(quick, here(quick)["lease"], "S1")
    again = here(quick)
    assert again["prompt"].startswith("Mend it\n")
    assert "the tests are red" in again["prompt"]
    assert again["session"] is None


@pytest.fixture
def claude(tmp_path, monkeypatch):
    """Where Claude keeps its sessions."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return tmp_path / "claude"


def test_a_retry_resumes_the_session_where_the_agent_can(quick, claude, tmp_path):
    claude_keeps(claude, "S1", tmp_path / "work" / "a")
    quick.add({"id": "a", "prompt": "Mend it", "agent": "claude"})
    fail(quick, here(quick)["lease"], "S1", (10, 2, 0, 0))
    fail(quick, here(quick)["lease"], "S1", (5, 1, 0, 0))
    again = here(quick)
    assert (again["session"], again["baseline"]) == ("S1", (15, 3, 0, 0))
    assert "Mend it" not in again["prompt"]
    assert again["subject"] == "Mend it", "the commit of what it leaves is about the task"
    assert "S1" in again["argv"]


def test_a_session_that_is_kept_elsewhere_is_resumed_by_its_file(quick, claude, tmp_path):
    file = claude_keeps(claude, "S1", tmp_path / "elsewhere")
    quick.add({"id": "a", "prompt": "Mend it", "agent": "claude"})
    fail(quick, here(quick)["lease"], "S1")
    again = here(quick)
    assert again["session"] == "S1"
    assert again["argv"][-2:] == ["--resume", str(file)]


def test_a_session_that_is_gone_starts_anew_with_what_was_done_so_far(quick, claude):
    quick.add({"id": "a", "prompt": "Mend it", "agent": "claude"})
    files = [{"path": "login.py", "added": 3, "removed": 1, "change": "M", "binary": False}]
    work = {"branch": "fairlane/a", "files": files, "more": 2}
    report = Report(detail="the tests are red", result={"answer": "Half of it is done."})
    ending = Ending(Happening.FAILED, report, "S1", work=work)
    attempts.finish(quick.context, {here(quick)["lease"]: ending})
    again = here(quick)
    assert (again["session"], again["baseline"]) == (None, None)
    assert "--resume" not in again["argv"]
    assert again["prompt"].startswith("Mend it\n\nAn earlier attempt at this was made on branch")
    assert (
        "> Changed: login.py (+3 -1), and 2 more\n> It said:\n> Half of it is done."
        in (again["prompt"])
    )
    assert "the tests are red" in again["prompt"]


def test_a_session_of_another_machine_is_not_resumed(quick, claude, tmp_path):
    claude_keeps(claude, "S1", tmp_path / "work" / "a")
    quick.add({"id": "a", "prompt": "Mend it", "agent": "claude"})
    (first,) = attempts.lease(quick.context, changed(HERE, host="elsewhere")).documents
    fail(quick, first["lease"], "S1")
    assert here(quick)["session"] is None


def test_a_session_of_another_program_is_not_resumed(quick, claude, tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    codex_keeps(tmp_path / "codex", "S1")
    quick.add({"id": "a", "prompt": "Mend it", "agent": "claude"})
    fail(quick, here(quick)["lease"], "S1")
    tasks.edit(quick.context, ["a"], {"agent": "codex"})
    again = here(quick)
    assert (again["agent"], again["session"]) == ("codex", None)


def test_a_holder_outside_gets_the_session_as_it_was_reported(quick, claude):
    quick.add({"id": "a", "prompt": "Mend it", "agent": "claude"})
    (first,) = pull.lease(quick.context)["leases"]
    fail(quick, first["lease"], "S1")
    (again,) = pull.lease(quick.context)["leases"]
    assert again["session"] == "S1"


def test_a_template_is_filled(quick, tmp_path):
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "fix.md").write_text("{title}, try {attempt}: {prompt} ({error})")
    quick.add({"id": "a", "title": "Mend", "prompt": "now", "template": "fix", "session": "fresh"})
    first = here(quick)
    assert first["prompt"] == "Mend, try 1: now ()"
    fail(quick, first["lease"])
    assert here(quick)["prompt"].startswith("Mend, try 2: now (the tests are red)")


def test_a_lease_is_given_though_its_template_is_gone(office, tmp_path):
    (tmp_path / "templates").mkdir()
    template = tmp_path / "templates" / "fix.md"
    template.write_text("{prompt}")
    office.add({"id": "a", "prompt": "now", "template": "fix"})
    template.unlink()
    document = here(office)
    assert (document["prompt"], document["argv"]) == ("now", [])
    assert "no template" in document["problem"]


def test_a_lease_is_given_though_its_agent_has_left_the_settings(tmp_path):
    own = {"agents": {"mine": {"argv": ["mine", "{prompt}"]}}}
    before = TestContext(tmp_path, own)
    before.add({"id": "a", "prompt": "now", "agent": "mine"})
    after = TestContext(tmp_path, store=before.context.store)
    document = attempts.lease(before.context, HERE).documents[0]
    assert document["argv"] == ["mine", "now"]
    (open_one,) = attempts.open_here(after.context)
    assert (open_one["lease"], open_one["argv"]) == (document["lease"], [])
    assert open_one["problem"] == "agent mine is not known here"


@pytest.mark.parametrize(
    ("record", "agent", "pool"),
    [
        ({}, "claude", "anthropic"),
        ({"agent": None}, "claude", "anthropic"),
        ({"agent": "codex"}, "codex", "openai"),
        ({"command": ["make"]}, "shell", None),
        ({"agent": "opencode"}, "opencode", None),
    ],
)
def test_a_stored_task_has_its_agent_and_its_pool(office, record, agent, pool):
    office.add({"id": "a", **record})
    with office.context.store.read() as reading:
        task = reading.task("a")
    assert (task.agent, task.pool) == (agent, pool)


def test_a_task_of_an_older_store_gets_its_agent_with_the_lease(office):
    office.add({"id": "new", "not_before": "2027-01-01T00:00:00Z"})
    with office.context.store.write() as tx:
        now = office.context.now()
        tx.insert([Placed(Task("old", 7, created_at=now, ready_since=now))])
    document = here(office)
    assert (document["task"], document["agent"]) == ("old", "claude")
    assert document["pool"] == "anthropic"
