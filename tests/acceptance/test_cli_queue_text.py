"""What people read: every verb once, word for word, and in colour on a terminal."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane.cli.look.events import event_line
from fairlane.cli.main import run

TEXTS = Path(__file__).parent / "texts"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(home, *words, code=0):
    answer = home.run(*words)
    assert answer.code == code, answer
    return (answer.out if code == 0 else answer.err).rstrip("\n")


def text(name):
    """What a verb is to say, from the file of that name."""
    return (TEXTS / f"{name}.txt").read_text().rstrip("\n")


@pytest.fixture
def shop(home):
    home.policy("balanced", "retry.jitter=0", "caps.all=2")
    said(home, "project", "add", "web", "--weight", 3)
    said(home, "add", "Fix the login form", "--id", "login", "--project", "web", "--title", "Login")
    return home


def test_one_line_where_one_line_is_enough(shop):
    assert said(shop, "add", "x", "--project", "web") == "added t1 (code, web): next but one"
    assert said(shop, "add", "x", "--project", "web") == "added t2 (code, web): 3rd of its project"
    assert said(shop, "add", "x", "--id", "login") == "login is known already: queued"
    assert said(shop, "add", "x", "--need", "login") == "added t3 (code, default): waits"
    assert said(shop, "add", "x", "--dry-run") == "t4 would be added: next"
    assert said(shop, "edit", "t1", "t2", "--priority", 5) == "2 tasks changed (priority): t1, t2"
    assert said(shop, "pause", "project:web") == "project web is paused"
    shop.later(180)
    again = "project web was paused already, by ana 3m ago"
    assert said(shop, "pause", "project:web") == again
    assert said(shop, "resume", "project:web") == "project web goes on"
    assert said(shop, "resume") == "nothing was paused"
    assert said(shop, "cancel", "t3") == "t3 is canceled"
    assert said(shop, "reclaim") == "no lease has run out"
    assert said(shop, "clear", "kind:review") == "nothing is queued in kind review"
    assert said(shop, "replay") == "no decision is recorded"
    assert said(shop, "group", "list") == "there is no group"
    assert said(shop, "project", "add", "web") == "there is a project already: web (weight 3)"
    kept = "canceled: 3 queued tasks (code 3): login, t1, t2"
    assert said(shop, "clear", "--yes") == kept
    assert said(shop, "list", "--status", "queued") == "no task fits"


def test_the_life_of_a_lease(shop):
    assert said(shop, "lease", "--worker", "box1").splitlines() == [
        "1 lease taken:",
        "  lease  task   project  kind  attempt  expires  what",
        "  L1     login  web      code        1  in 5m    Login",
    ]
    assert said(shop, "lease") == "Nothing to take. Nothing is ready."
    shop.later(60)
    beat = "login is running; the lease now ends in 5m"
    assert said(shop, "heartbeat", "L1") == beat
    assert said(shop, "report", "L1", "--note", "half way") == "noted; login is running"
    assert said(shop, "release", "L1", "--failed", "--reason", "exit 1") == (
        "login is queued; tries again in 30s"
    )
    shop.later(30)
    assert said(shop, "lease", "--limit", 1).startswith("1 lease taken:")
    assert said(shop, "complete", "L2") == "login is done"
    assert said(shop, "complete", "L2") == "login was done already"
    said(shop, "add", "x", "--max-attempts", 1)
    said(shop, "lease")
    shop.later(300)
    assert said(shop, "reclaim").splitlines() == [
        "1 lease had run out: t1",
        "out of attempts, parked: t1",
    ]
    assert said(shop, "complete", "L3") == (
        "t1 is done (late: its lease had run out, and nobody had taken it again)"
    )
    assert said(shop, "replay") == "3 decisions replayed, the same every time"


def test_a_parked_task_and_its_way_back(shop):
    said(shop, "edit", "login", "--max-attempts", 1)
    said(shop, "lease")
    parked = said(shop, "release", "L1", "--failed", "--reason", "exit 1")
    assert parked == "login is parked: failed: exit 1 (attempt 1 of 1)"
    assert said(shop, "why", "login") == (
        "login is parked: failed: exit 1 (attempt 1 of 1); `fairlane retry login` puts it back."
    )
    assert said(shop, "retry", "login") == "login is queued"


def test_the_list(shop):
    said(shop, "add", "x", "--id", "tests", "--project", "web", "--need", "login")
    for name in ("docs", "m", "n"):
        said(shop, "add", "x", "--id", name)
    said(shop, "lease", "--limit", 1, "--worker", "box1")
    shop.later(3 * 60)
    assert said(shop, "list") == text("list")
    assert said(shop, "list", "--limit", 1).endswith("… and more: give --limit, or narrow the list")


def test_show(shop):
    said(shop, "lease", "--worker", "b1")
    shop.later(60)
    said(shop, "complete", "L1", "--tokens", "input=12000,output=345", "--cost", "0.5")
    assert said(shop, "show", "login") == text("show")


def test_show_tells_the_best_priority_how_it_is_merged_and_tables_as_json(home, tmp_path):
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"id": "a", "title": "T", "priority": 0, "merge": "merge", "x": {"y": [1]}}')
    said(home, "import", "jsonl", file)
    words = " ".join(said(home, "show", "a").split())
    assert "priority 0 " in words
    assert "merge merge " in words
    assert 'x={"y": [1]}' in words
    said(home, "edit", "a", "--priority", 20000, "--estimate", 20000)
    words = " ".join(said(home, "show", "a").split())
    assert "priority 20000 estimate 20,000 tokens" in words


def test_status_summary_and_stats(shop):
    said(shop, "policy", "set", 'budget=[{scope="all",usd=20,window="day"}]')
    for _ in range(3):
        said(shop, "add", "x", "--estimate", 1000)
    said(shop, "lease", "--worker", "box1")
    shop.later(240)
    said(shop, "complete", "L1", "--tokens", 12_345, "--cost", "0.5")
    said(shop, "report", "L2", "--tokens", 500, "--note", "half way")
    said(shop, "pause", "project:web", "--reason", "release day")
    assert said(shop, "status") == text("status")
    assert said(shop, "summary") == text("summary")
    assert said(shop, "stats") == text("stats")


def test_holders_are_named_although_their_ids_occur_in_the_sentence(shop):
    for name in ("2", "a", "c"):
        said(shop, "add", "x", "--id", name, "--project", "web")
    assert "cap all is full: 2 of 2 in flight (by login, 2)" in said(shop, "plan")
    assert "(by login, 2)" in said(shop, "why", "c")


def test_many_paused_tasks_share_a_line_of_the_status(shop):
    for at in range(3):
        said(shop, "add", "x", "--id", f"p{at}")
        said(shop, "pause", f"task:p{at}")
    assert said(shop, "status").count(" is paused by ") == 3
    said(shop, "pause", "task:login")
    text = " ".join(said(shop, "status").split())
    assert "4 tasks are paused: login, p0, p1 and 1 more (fairlane list --held-by paused)" in text
    assert " is paused by " not in text


def test_projects_groups_pools_workers(shop):
    said(shop, "add", "x", "--group", "release")
    said(shop, "lease", "--worker", "box1", "--label", "gpu")
    assert said(shop, "project", "list").splitlines() == [
        "  project  weight  in flight  queued  parked  done  tokens  cost",
        "  default       1          1       0             0       0",
        "  web           3          1       0             0       0",
    ]
    assert said(shop, "group", "show", "release").splitlines() == [
        "release",
        "  release  ░░░░░░░░░░░░░░░░  0 of 1 done, 1 running",
        "  running",
        "    t1 on box1, for less than 1s: x",
        "  time  since 2026-01-30T12:00:00Z, less than 1s so far",
    ]
    assert said(shop, "pool", "show", "anthropic").splitlines() == [
        "anthropic",
        "  in flight  2",
        "  is         well",
    ]
    assert said(shop, "worker", "list").splitlines()[1].split() == [
        "box1", os.uname().nodename, "2", "now", "live", "gpu",
    ]  # fmt: skip


def test_a_canceled_task_is_put_back_by_the_command_that_the_refusal_names(shop):
    said(shop, "cancel", "login")
    refused = said(shop, "retry", "login", code=1).splitlines()
    assert refused[0] == "error: login is canceled and cannot be retried"
    assert refused[2].strip() == "`fairlane add --id login --again` puts it back."
    said(shop, "add", "--id", "login", "--again")
    assert shop.ask("show", "login")["task"]["status"] == "queued"


def test_an_agent_that_is_not_known_is_a_warning(shop):
    answer = shop.run("add", "x", "--agent", "cluade")
    assert answer.code == 0
    assert answer.err == "warning: agent cluade is not known here. Did you mean 'claude'?\n"
    assert shop.run("add", "x", "--agent", "codex").err == ""


def test_eighty_columns_hold_the_head_of_a_table(shop, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said(shop, "add", "x", "--id", "long", "--need", "login", "--title", "y" * 40)
    lines = said(shop, "list").splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].endswith("title")
    assert lines[-1] == "     waits for login"


def test_a_run_that_leaves_work_says_where_to_look(shop):
    said(shop, "pause")
    left = ["no attempt ended.", "What waits, and why: fairlane status"]
    assert said(shop, "run").splitlines() == left


def test_an_event_wraps_on_a_terminal(monkeypatch):
    data = {"reason": "the tests of the login form fail, all of them, at once", "attempt": 1}
    event: Any = {"at": "2026-01-30T12:00:00Z", "kind": "failed", "task": "t1", "data": data}
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\n" not in event_line(event, None)
    monkeypatch.setattr(sys, "stdout", Terminal())
    first, *others = event_line(event, None).splitlines()
    assert others[-1] == " " * first.index("the tests") + "attempt 1"
    assert max(map(len, (first, *others))) <= 80


def test_a_folder_that_is_no_repository_is_a_warning(shop, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    words = f"warning: {plain} is not a git repository; no task of api starts until it is\n"
    assert shop.run("project", "add", "api", "--repo", plain).err == words
    assert shop.run("project", "set", "api", "--weight", "2").err == ""
    (plain / ".git").mkdir()
    assert shop.run("project", "set", "api", "--repo", plain).err == ""


def test_an_empty_log_says_where_to_look(shop):
    said(shop, "lease", "--limit", "1")
    answer = shop.run("logs", "login")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err == "it has printed nothing; `fairlane show login` tells how it stands\n"
    folder = shop.folder / "runs" / "login" / "1"
    folder.mkdir(parents=True)
    (folder / "stderr.log").write_text("make: no rule")
    assert shop.run("logs", "login").err == "nothing on stdout; see fairlane logs login --stderr\n"
    assert shop.run("logs", "login", "--stderr").out == "make: no rule"


def test_errors_say_what_which_and_what_now(shop):
    assert said(shop, "show", "logn", code=1) == (
        "error: there is no task 'logn'\nhint: `fairlane list` shows what there is."
    )
    assert said(shop, "add", "x", "--project", "wbe", code=1) == (
        "error: there is no project 'wbe'\n"
        "hint: Did you mean 'web'? To add it: fairlane project add wbe."
    )
    assert said(shop, "sttus", code=2) == (
        "error: no such verb: 'sttus'\nhint: Did you mean 'status'?"
    )
    assert said(shop, "help", code=2).endswith("hint: `fairlane --help` lists all verbs.")
    assert "Choose from: bash, zsh, fish\n" in said(shop, "completion", code=2)
    assert said(shop, "stauts", code=2).endswith("hint: Did you mean 'status'?")
    assert said(shop, "add", "Fix", "the", "form", code=2).endswith(
        'hint: Put the prompt in quotes: fairlane add "Fix the login form".'
    )
    for verb in ("why", "logs"):
        assert said(shop, verb, "logn", code=1) == said(shop, "show", "logn", code=1)
    assert said(shop, "complete", "L9", code=1).startswith("error: no lease 'L9'")
    assert said(shop, "clear", code=1) == (
        "error: not cleared: 1 queued task (code 1): login\nhint: Add --yes to cancel them."
    )


def test_control_characters_of_users_are_made_visible(shop):
    evil = "\x1b[2J\u202egone"
    said(shop, "add", evil, "--title", evil, "--id", "evil")
    said(shop, "lease")
    said(shop, "report", "L2", "--note", evil)
    said(shop, "release", "L1", "--failed", "--reason", evil)
    for words in (
        ("list",), ("show", "evil"), ("show", "login"), ("events",), ("status",), ("summary",),
        ("list", "--json"), ("show", "evil", "--json"), ("pause", "--reason", evil),
    ):  # fmt: skip
        answer = shop.run(*words)
        assert "\x1b" not in answer.out + answer.err, words
        assert "\u202e" not in answer.out + answer.err, words


def test_colour_only_on_a_terminal_and_never_against_the_users_wish(shop, monkeypatch):
    words = ["--home", str(shop.folder), "list"]
    shown = {}
    for name, environment in (("colour", {}), ("plain", {"NO_COLOR": "1"})):
        terminal = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", terminal)
            patch.setenv("TERM", "xterm")
            for key, value in environment.items():
                patch.setenv(key, value)
            assert run(words) == 0
        shown[name] = terminal.getvalue()
    assert "\x1b[32mready\x1b[0m" in shown["colour"]
    assert "\x1b" not in shown["plain"]
