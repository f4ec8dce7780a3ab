"""Wrong usage and impossible scenarios: exit 2, the culprit is named, nothing else is said."""

from __future__ import annotations

import json
import re

import pytest

from fairlane.cli.main import run
from tests.acceptance.commands import EXAMPLES, fairlane

NOW = "now = 2026-01-30T12:00:00Z\n"


def tasks(*rows: str) -> str:
    return NOW + "task = [" + ", ".join(f"{{ {row} }}" for row in rows) + "]\n"


#: What is wrong -> (scenario, what the message names, what the hint says).
IMPOSSIBLE = {
    "unknown key": (NOW + "pausd = []", "unknown key 'pausd'", "'paused'"),
    "unknown task key": (tasks('id = "a", prio = 3'), "task a: unknown key 'prio'", "priority"),
    "unknown project key": (
        NOW + '[[project]]\nname = "p"\nwieght = 2',
        "project p: unknown key 'wieght'",
        "'weight'",
    ),
    "unknown expect key": (NOW + "[expect]\npick = []", "expect: unknown key 'pick'", "'picks'"),
    "unknown policy key": (NOW + "[policy]\ncap.all = 2", "policy: unknown key cap", "caps"),
    "unknown preset": (NOW + '[policy]\npreset = "fair"', "unknown preset 'fair'", "fair-share"),
    "bad cap": (NOW + "[policy]\ncaps.all = -1", "caps.all: -1 is out of range", ""),
    "no now": ('task = [{ id = "a" }]', "now: missing", "now ="),
    "now without a zone": ("now = 2026-01-30T12:00:00", "now: time without a zone", "zone"),
    "now is no time": ('now = "noon"', "now: not a time: 'noon'", "2026-"),
    "now is a date": ("now = 2026-01-30", "now: not a time: 2026-01-30", ""),
    "no id": (tasks('kind = "code"'), "task 1: id: missing", "id"),
    "bad id": (tasks('id = "../a"'), "task ../a: id: not a proper name", "letters"),
    "same id twice": (tasks('id = "a"', 'id = "a"'), "task a: id: 'a' appears twice", ""),
    "negative age": (
        tasks('id = "a", age = "-5m"'),
        "task a: age: '-5m' is out of range",
        "created",
    ),
    "age is no duration": (tasks('id = "a", age = "5 min"'), "task a: age: not a duration", "5m"),
    "age is a number": (tasks('id = "a", age = 5'), "task a: age: not a duration: 5", "5m"),
    "negative depth": (tasks('id = "a", depth = -1'), "task a: depth: -1 is out of range", ""),
    "half a failure": (tasks('id = "a", failures = 0.5'), "task a: failures: not a whole", ""),
    "bad status": (tasks('id = "a", status = "ready"'), "task a: status: 'ready' is none of", ""),
    "unknown need": (
        tasks('id = "a", needs = ["bb"]', 'id = "b"'),
        "task a: needs: there is no task 'bb'",
        "'b'",
    ),
    "unknown parent": (tasks('id = "a", parent = "p"'), "task a: parent: there is no task 'p'", ""),
    "needs itself": (tasks('id = "a", needs = ["a"]'), "task a: needs: a cycle: a waits for a", ""),
    "cycle": (
        tasks('id = "a", needs = ["b"]', 'id = "b", needs = ["c"]', 'id = "c", parent = "a"'),
        "task c: parent: a cycle: a waits for b waits for c waits for a",
        "Take one edge out",
    ),
    "lease of a queued task": (
        tasks('id = "a", lease_expires = 2026-01-30T12:00:00Z'),
        "task a: lease_expires: a queued task has no lease",
        "running",
    ),
    "worker of a done task": (
        tasks('id = "a", status = "done", worker = "w"'),
        "task a: worker:",
        "",
    ),
    "backoff of a running task": (
        tasks('id = "a", status = "running", backoff_until = 2026-01-30T12:01:00Z'),
        "task a: backoff_until: a running task is not in backoff",
        "queued",
    ),
    "unknown worker": (
        tasks('id = "a", status = "running", worker = "bx"') + '[[worker]]\nname = "box"',
        "task a: worker: there is no worker 'bx'",
        "'box'",
    ),
    "negative slots": (
        NOW + '[[worker]]\nname = "box"\nslots = -1',
        "worker box: slots: -1 is out of range",
        "",
    ),
    "project status": (
        NOW + '[[project]]\nname = "p"\nstatus = "asleep"',
        "project p: status: 'asleep' is none of active, paused, archived",
        "",
    ),
    "negative weight": (NOW + '[[project]]\nname = "p"\nweight = -1', "project p: weight: -1", ""),
    "project twice": (
        NOW + '[[project]]\nname = "p"\n[[project]]\nname = "p"',
        "project p: name: 'p' appears twice",
        "",
    ),
    "project as a table": (NOW + '[project]\nname = "p"', "project: not a list", "[[project]]"),
    "bad budget": (
        NOW + '[[project]]\nname = "p"\nbudgets = [{ token = 5 }]',
        "project p: budgets: unknown key budget[0].token",
        "tokens",
    ),
    "foreign prefix": (
        tasks('id = "w-1", project = "q"') + '[[project]]\nname = "p"\nprefix = "w-"',
        "task w-1: project: ids that begin with 'w-' belong to project 'p'",
        "",
    ),
    "undeclared workspace": (
        tasks('id = "a", project = "p", workspace = "w3"')
        + '[[project]]\nname = "p"\nworkspaces = ["w1", "w2"]',
        "task a: workspace: project 'p' has no workspace 'w3'",
        "w1",
    ),
    "workspace held twice": (
        tasks(*(f'id = "{x}", workspace = "w", status = "running"' for x in "ab")),
        "task b: workspace: 'w' is held by 'a' already",
        "At most one",
    ),
    "lock held twice": (
        tasks(*(f'id = "{x}", locks = ["l"], status = "running"' for x in "ab")),
        "task b: locks: 'l' is held by 'a' already",
        "At most one",
    ),
    "bad pause": (NOW + 'paused = ["projct:web"]', "'projct:web' is no scope", "'project'"),
    "pause of an unknown task": (NOW + 'paused = ["task:x"]', "paused: there is no task 'x'", ""),
    "bad usage scope": (NOW + '[[usage]]\nscope = "kind:code"', "usage 1: scope: 'kind:code'", ""),
    "negative usage": (NOW + '[[usage]]\nscope = "all"\ntokens = -5', "usage 1: tokens: -5", ""),
    "cooldown is no time": (
        NOW + '[[pool]]\nname = "p"\ncooldown_until = "5m"',
        "pool p: cooldown_until: not a time",
        "",
    ),
    "expects an unknown task": (NOW + '[expect]\npicks = ["a"]', "expect: picks: there is no", ""),
    "not TOML": ("now = = 3", "cannot be parsed", "TOML"),
    "not JSON": ('{"now": }', "cannot be parsed", "JSON"),
    "same key twice in JSON": ('{"now": "a", "now": "b"}', "key 'now' is given twice", ""),
}


@pytest.mark.parametrize("wrong", IMPOSSIBLE)
def test_an_impossible_scenario_names_the_culprit(wrong, tmp_path, capsys):
    text, message, hint = IMPOSSIBLE[wrong]
    file = tmp_path / "bad.toml"
    file.write_text(text)
    assert run(["plan", "--scenario", str(file), "--check", "--json"]) == 2
    said = capsys.readouterr()
    error = json.loads(said.out)["error"]
    assert error["message"].startswith(str(file))
    assert message in error["message"]
    assert hint in error["hint"]
    assert said.err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--scenario", "nowhere.toml"),
        ("plan", "--scenario", "examples"),
        ("plan", "--check"),
        ("plan", "--sceanrio", "x"),
        ("plan", "--planner", "magic", "--scenario", EXAMPLES / "balanced.toml"),
        ("plan", "--now", "noon", "--scenario", EXAMPLES / "balanced.toml"),
        ("why", "--scenario", EXAMPLES / "balanced.toml"),
        ("plam",),
        ("policy", "check", "nowhere.toml"),
        ("policy", "diff", "balanced", "balancd"),
    ],
)
def test_wrong_usage_exits_2_with_a_document_or_with_words(arguments):
    said = fairlane(*arguments, "--json")
    assert (said.code, said.err) == (2, "")
    assert list(said.document) == ["schema", "error"]
    assert list(said.document["error"]) == ["code", "message", "hint"]
    words = fairlane(*arguments)
    assert (words.code, words.out) == (2, "")
    assert re.match("error: ", words.err)


def test_a_file_that_is_no_text(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    said = fairlane("plan", "--json", "--scenario", tmp_path / "x.toml")
    assert (said.code, said.err) == (2, "")
    assert "not UTF-8" in said.document["error"]["message"]


def test_no_verb_shows_the_list_and_help_is_quick():
    assert "The queue:" in fairlane("--help").out
    assert fairlane().code == 2
    assert fairlane("--version").out.startswith("fairlane 0.")


@pytest.mark.parametrize("typed", ["-1", "1e9", "$-0.5", "nan", "much"])
def test_an_amount_is_repeated_as_it_was_typed(typed, capsys):
    assert run(["report", "L1", "--cost", typed, "--json"]) == 2
    message = json.loads(capsys.readouterr().out)["error"]["message"]
    assert f"not an amount of dollars: {typed!r}." in message
