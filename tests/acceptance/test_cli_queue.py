"""The documents that callers rely on, verb by verb, and the exit codes."""

from __future__ import annotations

import io
import json

import pytest

ROW = {
    "id", "project", "kind", "status", "priority", "group", "attempts", "failures", "ready", "hold",
}  # fmt: skip


@pytest.fixture
def busy(home):
    """Six tasks in two projects: one done, one failed, one parked, two in flight, one waiting."""
    home.policy("balanced", "retry.jitter=0", 'budget=[{scope="all",usd=2000,window="day"}]')
    home.ask("project", "add", "web", "--weight", 3)
    for name in ("a", "b", "c", "d", "e"):
        home.add("--id", name, "--project", "web", "--title", f"Task {name}")
    home.add("--id", "f", "--need", "e", "--group", "g")
    home.ask("edit", "c", "--max-attempts", 1)
    leases = home.lease()
    home.later(60)
    home.ask("complete", leases["a"], "--tokens", "input=1000,output=200", "--cost", "0.42")
    home.ask("release", leases["b"], "--failed", "--reason", "exit 1")
    home.ask("release", leases["c"], "--failed", "--reason", "exit 2")
    home.ask("report", leases["d"], "--progress", "1/2", "--note", "half", "--tokens", 50)
    home.leases = leases
    return home


def test_add(home):
    document = home.ask("add", "Fix it", "--id", "a")
    assert document == {
        "schema": "fairlane/1",
        "tasks": [{"id": "a", "created": True, "status": "queued", "position": 1}],
        "deferred": False,
    }
    waits = home.ask("add", "x", "--need", "a")["tasks"][0]
    assert (waits["id"], waits["position"]) == ("t1", None)


def test_list_and_show(busy):
    document = busy.ask("list")
    assert list(document)[:2] == ["schema", "tasks"]
    assert all(set(row) >= ROW for row in document["tasks"])
    rows = busy.tasks()
    assert [rows[name]["status"] for name in "abcdef"] == [
        "done", "queued", "parked", "running", "queued", "queued",
    ]  # fmt: skip
    assert set(rows["f"]["hold"]) >= {"gate", "code", "reason", "until"}
    assert (rows["f"]["ready"], rows["f"]["hold"]["code"]) == (False, "needs")
    assert (rows["e"]["ready"], rows["e"]["hold"]) == (True, None)
    assert list(busy.tasks("--status", "parked")) == ["c"]
    assert list(busy.tasks("--status", "done,parked")) == ["a", "c"]
    assert list(busy.tasks("--group", "g")) == list(busy.tasks("--project", "default")) == ["f"]
    assert list(busy.tasks("--held-by", "backoff")) == ["b"]
    assert list(busy.tasks("--limit", 2)) == ["a", "b"]
    assert list(busy.tasks("--kind", "review")) == []
    whole = busy.ask("show", "a")
    assert whole["attempts"][0]["tokens"] == {
        "input": 1000, "output": 200, "cache_read": 0, "cache_write": 0,
    }  # fmt: skip
    assert whole["attempts"][0]["usd"] == 0.42


def test_a_list_of_none_is_refused(busy):
    refused = busy.run("list", "--limit", 0)
    assert (refused.code, "--limit" in refused.err) == (2, True)


def test_status(busy):
    document = busy.ask("status")
    assert set(document) >= {
        "paused", "capacity", "queued", "parked", "running", "by_hold", "pools", "budgets",
        "warnings", "last_cycle",
    }  # fmt: skip
    assert list(document["capacity"]) == ["mode", "cap", "in_flight", "free"]
    queued = document["queued"]
    assert set(queued) == {"total", "ready", "waiting", "held", "by_kind", "by_project"}
    assert (queued["total"], queued["ready"], queued["waiting"]) == (3, 1, 2)
    assert (document["parked"], document["by_hold"]) == (1, {"backoff": 1, "needs": 1})
    assert [row["task"] for row in document["running"]] == ["d"]


def test_plan_and_why(busy):
    plan = busy.ask("plan")
    assert list(plan) == [
        "schema", "now", "capacity", "picks", "reclaims", "holds", "reason", "wake_at", "digests",
    ]  # fmt: skip
    assert plan["wake_at"] == "2026-01-30T12:01:30Z"
    why = busy.ask("why", "f")
    assert list(why) == [
        "schema", "task", "status", "verdict", "holds", "position", "ahead", "score", "share",
        "would_start_if", "starts",
    ]  # fmt: skip
    assert [hold["code"] for hold in why["holds"]] == ["needs"]
    for change in why["would_start_if"]:
        assert set(change) == {"change", "apply"}
    assert "fairlane retry c" in busy.ask("why", "c")["verdict"]
    assert busy.error("why", "nobody")["code"] in ("not_found", "unknown_task")


def test_lease_and_what_follows(home):
    home.add("--id", "a", "--title", "T")
    document = home.ask("lease", "--worker", "box1", "--label", "gpu")
    assert (list(document), document["reason"]) == (["schema", "leases", "reason"], "ready")
    lease = document["leases"][0]
    assert set(lease) >= {
        "lease", "task", "fence", "attempt", "expires_at", "prompt", "command",
    }  # fmt: skip
    assert (lease["prompt"], lease["expires_at"]) == ("work", "2026-01-30T12:05:00Z")
    assert home.ask("worker", "list")["workers"][0]["labels"] == ["gpu"]
    for verb, status in (("heartbeat", "running"), ("report", "running"), ("complete", "done")):
        answer = home.ask(verb, lease["lease"])
        assert {"lease", "task", "status"} <= set(answer)
        assert answer["status"] == status
    assert home.ask("lease") == {"schema": "fairlane/1", "leases": [], "reason": "none"}


def test_the_lease_of_an_attempt_comes_from_its_environment(home, monkeypatch):
    home.add("--id", "a")
    monkeypatch.setenv("FAIRLANE_LEASE", home.lease()["a"])
    assert home.ask("report", "--progress", "3/7", "--note", "tests")["status"] == "running"
    assert home.ask("show", "a")["attempts"][0]["note"] == "3/7: tests"
    assert home.ask("complete")["status"] == "done"
    monkeypatch.delenv("FAIRLANE_LEASE")
    assert home.error("report", code=2)["code"] == "usage"


def test_lease_waits_until_its_time_is_up(home, monkeypatch):
    from fairlane.service import pull

    monkeypatch.setattr(pull, "POLL_SECONDS", 0.01)
    assert home.error("lease", "--wait", "soon", code=2)["code"] == "usage"
    assert home.run("lease", "--wait", "0s").code == 0


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("700", (0, 700, 0, 0)),
        ("input=1,output=2,cache_read=3,cache_write=4", (1, 2, 3, 4)),
        ("cache_read=1_000", (0, 0, 1000, 0)),
    ],
)
def test_tokens_are_counters(home, told, kept):
    home.add("--id", "a")
    home.ask("complete", home.lease()["a"], "--tokens", told)
    assert tuple(home.ask("show", "a")["attempts"][0]["tokens"].values()) == kept


@pytest.mark.parametrize(
    "told", ["-1", "1.5", "abc", "inputs=1", "input=1,input=2", "input=-1", "input=", "1" * 30]
)
def test_tokens_that_are_none_are_refused(home, told):
    home.add("--id", "a")
    lease = home.lease()["a"]
    assert home.error("complete", lease, f"--tokens={told}", code=2)["code"] == "usage"
    assert home.tasks()["a"]["status"] == "leased"


@pytest.mark.parametrize(
    ("told", "usd"), [("0.42", 0.42), ("$1.5", 1.5), ("0", 0), ("1e-5", 0.00001), ("0.1", 0.1)]
)
def test_cost_is_exact(home, told, usd):
    home.add("--id", "a")
    home.ask("complete", home.lease()["a"], "--cost", told)
    assert home.ask("show", "a")["attempts"][0]["usd"] == usd


@pytest.mark.parametrize("told", ["-1", "nan", "inf", "much", "1e30"])
def test_a_cost_that_is_none_is_refused(home, told):
    home.add("--id", "a")
    assert home.error("complete", home.lease()["a"], f"--cost={told}", code=2)["code"] == "usage"


def test_a_result_is_kept(home, tmp_path):
    for name, text, kept in (("a", '{"x": 1}', {"x": 1}), ("b", "done", {"text": "done"})):
        file = tmp_path / name
        file.write_text(text)
        home.add("--id", name)
        home.ask("complete", home.lease()[name], "--result", file)
        assert home.ask("show", name)["attempts"][0]["result"] == kept
    home.add("--id", "c")
    lease = home.lease()["c"]
    assert "nowhere" in home.error("complete", lease, "--result", "nowhere", code=2)["message"]
    assert home.tasks()["c"]["status"] == "leased"


def test_release_says_how_it_ended(home):
    home.add("--id", "a", "--agent", "claude")
    lease = home.lease()["a"]
    for wrong in (
        ("--failed", "--outcome", "throttled"),
        ("--failed", "--retry-after", "5"),
        ("--outcome", "lost"),
        ("--retry-after", "soon"),
    ):
        home.error("release", lease, *wrong, code=2)
    assert home.ask("release", lease, "--retry-after", "1.5")["status"] == "queued"
    assert home.ask("pool", "show", "anthropic")["pool"]["hits"] == 1


def test_cancel_tree_and_group(home):
    for name, more in (("a", ()), ("b", ("--parent", "a")), ("c", ("--parent", "b"))):
        home.add("--id", name, *more)
    for name in ("x", "y"):
        home.add("--id", name, "--group", "g")
    assert len(home.ask("cancel", "a", "--tree")["tasks"]) == 3
    assert len(home.ask("cancel", "--group", "g", "--reason", "no")["tasks"]) == 2
    assert {row["status"] for row in home.tasks().values()} == {"canceled"}
    assert home.error("cancel", code=2)["code"] == "usage"
    assert home.error("cancel", "nobody")["code"] == "unknown_task"


def test_cancel_of_what_is_in_flight_asks_it_to_stop(home):
    home.add("--id", "a")
    lease = home.lease()["a"]
    assert home.ask("cancel", "a")["tasks"][0]["stop_requested"]
    assert home.ask("heartbeat", lease)["stop"] is True
    assert home.ask("complete", lease)["status"] == "done"  # a success that comes before wins


def test_clear_off_a_terminal_needs_yes(home):
    home.add("--id", "a")
    home.add("--id", "b", "--kind", "review")
    error = home.error("clear")
    assert (error["code"], error["hint"]) == ("unconfirmed", "Add --yes to cancel them.")
    assert home.ask("clear", "kind:review", "--yes")["count"] == 1
    assert home.tasks()["b"]["reason"] == "cleared"
    assert home.ask("clear", "--yes")["tasks"] == ["a"]
    assert home.ask("clear")["count"] == 0  # nothing to do is no error
    assert home.error("clear", "projct:web", "--yes", code=2)["hint"]


def test_edit(home):
    home.add("--id", "a")
    home.add("--id", "b")
    rows = home.ask("edit", "a", "b", "--priority", 5, "--not-before", "1h", "--group", "g")[
        "tasks"
    ]
    assert [(row["priority"], row["group"], row["ready"]) for row in rows] == [(5, "g", False)] * 2
    home.ask("edit", "a", "--not-before", "none", "--group", "none", "--prompt", "new")
    task = home.task("a")
    assert (task["not_before"], task["group"], task["prompt"]) == (None, None, "new")
    home.lease()
    assert home.error("edit", "a", "--priority", 1)["code"] == "started"
    assert home.error("edit", "b", code=2)["message"] == "there is nothing to change"


def test_projects_groups_pools_workers(busy):
    assert {"name", "weight", "tasks"} <= set(busy.ask("project", "list")["projects"][0])
    assert busy.ask("project", "set", "web", "--max-in-flight", 2)["project"]["max_in_flight"] == 2
    assert busy.ask("project", "set", "web", "--max-in-flight", "none")["project"]["weight"] == 3
    assert busy.error("project", "remove", "web")["code"] == "in_use"
    busy.ask("project", "add", "gone")
    assert busy.ask("project", "remove", "gone")["removed"] == "gone"
    assert busy.ask("group", "show", "g")["group"]["progress"] == "0 of 1 done"
    assert busy.ask("group", "set", "g", "--priority", 7)["group"]["priority"] == 7
    assert busy.ask("group", "add", "h", "--parent", "g")["created"] is True
    assert busy.error("group", "set", "g", "--parent", "h")["code"] == "cycle"
    assert [pool["name"] for pool in busy.ask("pool", "list")["pools"]]
    assert len(busy.ask("worker", "list")["workers"]) == 1
    assert busy.error("pool", "show", "antropic")["hint"] == "Did you mean 'anthropic'?"
    assert busy.error("project", "add", "x", "--weight", -1, code=2)["hint"]


def test_summary_and_stats(busy):
    summary = busy.ask("summary", "--since", "12h")
    assert (summary["done"]["count"], summary["usd"], summary["tokens"]) == (1, 0.42, 1250)
    assert summary["parked"]["tasks"][0]["reason"] == "failed: exit 2 (attempt 1 of 1)"
    assert {"what": "task:c", "why": "parked: failed: exit 2 (attempt 1 of 1)"} in (
        summary["needs_person"]
    )
    assert busy.ask("summary", "--since", "30s")["done"]["count"] == 1
    stats = busy.ask("stats")
    assert [row["project"] for row in stats["projects"]] == ["web"]
    assert busy.error("summary", "--since", "yesterday", code=2)["hint"]


def test_events_and_replay(busy):
    page = busy.ask("events", "--after", 0)
    numbers = [event["number"] for event in page["events"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert page["cursor"] == numbers[-1]
    assert busy.ask("events", "--after", page["cursor"])["events"] == []
    mine = busy.ask("events", "--task", "b")["events"]
    assert [event["kind"] for event in mine] == ["added", "leased", "failed", "backoff"]
    assert mine[-1]["data"]["until"] == "2026-01-30T12:01:30Z"
    assert busy.ask("replay") == {"schema": "fairlane/1", "replayed": 1, "different": []}
    assert busy.ask("replay", 1, "--planner", "reference")["replayed"] == 1
    assert busy.ask("replay", "--list")["decisions"][0]["decision"] == 1
    assert busy.error("replay", 99)["code"] == "not_found"


def test_a_file_is_all_or_nothing_and_names_its_line(home, tmp_path):
    file = tmp_path / "tasks.jsonl"
    rows = [{"id": "a", "prompt": "x"}, {"id": "b", "priorty": 3}]
    file.write_text("\n".join(map(json.dumps, rows)))
    error = home.error("add", "--file", file, code=2)
    assert f"{file}:2: unknown field 'priorty'" in error["message"]
    assert error["hint"] == "Did you mean 'priority'?"
    assert home.tasks() == {}
    rows[1] = {"id": "b"}
    file.write_text("\n".join(map(json.dumps, rows)))
    added = home.ask("add", "--file", file, "--group", "g", "--chain", "--project", "default")
    assert [row["position"] for row in added["tasks"]] == [1, None]
    assert home.tasks()["b"]["hold"]["code"] == "needs"
    for wrong in (("--chain",), ("x", "--file", file), ("--file", tmp_path / "nowhere"), ()):
        home.error("add", *wrong, code=2)


def test_every_field_of_a_task_can_be_given(home, tmp_path):
    (tmp_path / "repo" / "templates").mkdir(parents=True)
    (tmp_path / "repo" / "templates" / "bug.md").write_text("{prompt} in {area}")
    (tmp_path / "prompt.txt").write_text("Fix it")
    home.ask("project", "add", "web", "--repo", tmp_path / "repo", "--workspace", "w1",
             "--pr", "gh pr create --fill")  # fmt: skip
    home.add("--id", "p", "--project", "web")
    home.ask(
        "add", "--id", "a", "--title", "T", "--prompt-file", tmp_path / "prompt.txt",
        "--project", "web", "--kind", "review", "--agent", "codex", "--priority", 5,
        "--parent", "p", "--need", "p", "--artifact", "x/y.md", "--group", "g", "--serial",
        "--lock", "db", "--lock", "api", "--workspace", "w1", "--pool", "mine",
        "--label", "gpu,ssd", "--estimate", 5000, "--timeout", "30m", "--max-attempts", 2,
        "--not-before", "2h",
        "--var", "area=login", "--template", "bug", "--base", "main", "--merge", "pr",
        "--env", "KEY=secret", "--meta", "ref=7", "--carry", "base", "--context", "none",
        "--check", "make 'unit test'", "--check", "true",
    )  # fmt: skip
    task = home.task("a")
    wanted = {
        "title": "T", "prompt": "Fix it", "project": "web", "kind": "review", "agent": "codex",
        "priority": 5, "parent": "p", "artifacts": ["x/y.md"], "group": "g", "parallel": False,
        "locks": ["db", "api"], "workspace": "w1", "pool": "mine", "labels": ["gpu", "ssd"],
        "estimate_tokens": 5000, "timeout": "30m", "max_attempts": 2,
        "not_before": "2026-01-30T14:00:00Z", "vars": {"area": "login"}, "template": "bug",
        "base": "main", "merge": "pr", "env": ["KEY"], "meta": {"ref": "7"}, "depth": 1,
        "carry": "base", "context": "none", "no_checks": False,
        "checks": [
            {"name": "make unit test", "argv": ["make", "unit test"], "timeout": None},
            {"name": "true", "argv": ["true"], "timeout": None},
        ],
    }  # fmt: skip
    assert {name: task[name] for name in wanted} == wanted
    assert "secret" not in json.dumps(home.ask("show", "a"))
    assert home.error("add", "x", "--project", "web", "--template", "bug")["code"] == (
        "unknown_placeholder"
    )
    assert home.error("add", "x", "--need", "nobody")["code"] == "unknown_task"


def test_what_stands_after_two_dashes_is_the_command(home):
    home.ask("add", "--id", "a", "--", "make", "--json", "-n", "test")
    task = home.task("a")
    assert (task["command"], task["agent"]) == (["make", "--json", "-n", "test"], "shell")
    assert home.ask("lease")["leases"][0]["command"] == ["make", "--json", "-n", "test"]


def test_another_policy_is_tried_without_being_used(home):
    for name, priority in (("a", 100), ("b", 10)):
        home.add("--id", name, "--priority", priority)
    before = home.dump()
    tried = home.ask("policy", "try", "fail-closed")
    assert tried["starts"] == {"now": ["b", "a"], "then": ["b"]}
    assert (tried["gains"], tried["loses"]) == ([], ["a"])
    assert {"key": "caps.all", "a": 4, "b": 1} in tried["differences"]
    assert "has to wait       a" in home.run("policy", "try", "fail-closed").out
    assert home.run("policy", "try", "balanced").out == "the next plan would be the same: b, a\n"
    assert home.dump() == before
    assert home.error("policy", "try", "nowhere.toml", code=2)["hint"]


def test_a_tree_of_groups_comes_from_a_file_or_standard_input(home, tmp_path, monkeypatch):
    home.ask("project", "add", "web", "--prefix", "web-")
    file = tmp_path / "tree.toml"
    file.write_text('[[tasks]]\nid = "web-1"\n[[tasks]]\nid = "zz"\n', encoding="utf-8")
    dry = home.ask("group", "add", "g", "--file", file, "--dry-run")
    assert (dry["dry_run"], home.tasks()) == (True, {})
    told = home.ask("group", "add", "g", "--file", file, "--title", "All", "--priority", 3)
    assert (told["created"], told["group"]["title"]) == (True, "All")
    assert [row["id"] for row in told["unrouted"]] == ["zz"]
    assert {name: row["priority"] for name, row in home.tasks().items()} == {"web-1": 3}
    text = io.TextIOWrapper(io.BytesIO(b'{"groups": [{"name": "h", "tasks": [{"id": "web-2"}]}]}'))
    monkeypatch.setattr("sys.stdin", text)
    told = home.ask("group", "add", "top", "--file", "-")
    assert [row["name"] for row in told["groups"]] == ["top", "h"]
    file.write_text("[[task]]\n", encoding="utf-8")
    assert (
        home.error("group", "add", "g", "--file", file, code=2)["hint"] == "Did you mean 'tasks'?"
    )
    assert "need --file" in home.error("group", "add", "g", "--dry-run", code=2)["message"]


def test_a_groups_priority_reaches_what_is_queued(home):
    home.ask("add", "work", "--id", "a", "--group", "g")
    home.ask("add", "work", "--id", "b", "--group", "g", "--priority", 7)
    home.ask("add", "work", "--id", "c")
    assert home.picks()[0] == "b"
    assert home.ask("group", "set", "g", "--priority", 1)["followed"] == 1
    assert home.picks()[0] == "a"


def test_a_recipe_is_a_chain_out_of_one_prompt(home):
    told = home.ask("add", "Log in", "--recipe", "full", "--id", "login")
    names = [f"login-{step}" for step in ("research", "plan", "implement", "review")]
    assert [row["id"] for row in told["tasks"]] == names
    assert home.picks() == names[:1]
    assert home.error("add", "x", "--recipe", "fulll", code=2)["hint"].startswith(
        "Did you mean 'full'?"
    )
    assert home.error("add", "--recipe", "full", code=2)["code"] == "usage"
    error = home.error("add", "x", "--recipe", "full", "--file", "f", code=2)
    assert error["message"] == "--recipe and --file were given"
