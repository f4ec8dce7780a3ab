"""The documented example of each of five other schedulers, converted and run, gives its result."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from fairlane.policy.policy import Policy
from tests.acceptance.commands import EXAMPLES, fairlane

FILES = EXAMPLES / "coming-from"


@pytest.fixture
def agent_queue(tmp_path):
    """A configuration and a database with two projects, 3 : 1."""
    folder = tmp_path / "agent-queue"
    shutil.copytree(FILES / "agent-queue", folder)
    with closing(sqlite3.connect(folder / "agent-queue.db")) as connection:
        connection.executescript((folder / "agent-queue.sql").read_text())
    return folder


def kept(home):
    """Every file of the home folder but the store, with what it holds."""
    files = sorted(home.folder.glob("*.toml*"))
    return {file.name: file.read_text() for file in files}


def held(home):
    """The store, but for the number of transactions."""
    return [line for line in home.dump() if "VALUES('version'," not in line]


def test_loopr_scores_135_130_111(home):
    document = home.ask("convert", "loopr", FILES / "loopr", "--write")
    assert (document["tasks"], document["added"], document["unknown"]) == (6, 6, [])
    picks = home.ask("plan")["picks"]
    assert [(pick["task"], pick["score"]) for pick in picks] == [
        ("loop-a", 135),
        ("loop-b", 130),
        ("loop-c", 111),
    ]
    assert picks[2]["score_parts"] == {"kind": 100, "age": 1, "depth": 30, "retries": -20}


def test_agency_the_second_serial_card_waits(home, tmp_path):
    project = tmp_path / "project"
    shutil.copytree(FILES / "agency" / "project", project)
    home.ask("convert", "agency", project / "config.yaml", "--write")
    home.ask("import", "cards", project)
    first, serial, parallel = (
        f"phase-1-login.{name}" for name in ("login-form", "sign-out", "read-the-form")
    )
    assert home.picks() == [first, parallel]
    leases = home.lease()
    assert (set(leases), home.hold(serial)) == ({first, parallel}, "lock")
    home.ask("complete", leases[parallel])
    assert home.hold(serial) == "lock"  # a parallel one frees nothing that it does not hold
    home.ask("complete", leases[first])
    assert home.picks() == [serial]


def test_agent_queue_project_a_is_next(home, agent_queue):
    before = (agent_queue / "agent-queue.db").read_bytes()
    document = home.ask("convert", "agent-queue", agent_queue, "--write")
    assert [(each["name"], each["weight"]) for each in document["projects"]] == [("a", 3), ("b", 1)]
    assert home.picks()[0] == "a-2"
    share = home.ask("why", "a-2")["share"]
    assert (share["received"], share["received_by_all"]) == (1000, 1500)
    assert (share["weight"], share["weights"]) == (3, 4)
    assert home.hold("a-3") == "needs"
    assert home.task("b-3")["reason"] == "BLOCKED in agent-queue"
    assert (agent_queue / "agent-queue.db").read_bytes() == before


def test_gas_town_one_queued_one_ready_then_dispatched(home):
    home.ask("convert", "gastown", FILES / "gas-town", "--write")
    home.ask("import", "beads", FILES / "gas-town" / "issues.jsonl", "gt-abc")
    status = home.ask("status")
    assert (status["queued"]["total"], status["queued"]["ready"]) == (1, 1)
    assert status["capacity"] | {"free": 5} == {
        "mode": "deferred",
        "cap": 5,
        "in_flight": 0,
        "free": 5,
    }
    assert list(home.lease()) == ["gt-abc"]
    status = home.ask("status")
    assert (status["queued"]["total"], status["capacity"]["in_flight"]) == (0, 1)


@pytest.mark.slow
def test_gas_town_is_dispatched_to_the_end(tmp_path):
    home = ("--home", tmp_path / "home")
    assert fairlane(*home, "convert", "gastown", FILES / "gas-town", "--write").code == 0
    assert fairlane(*home, "project", "set", "gastown", "--agent", "demo").code == 0
    issues = FILES / "gas-town" / "issues.jsonl"
    assert fairlane(*home, "import", "beads", issues, "gt-abc").code == 0
    said = fairlane(*home, "run", "--once")
    assert said.code == 0, said
    assert fairlane(*home, "run", "--until-idle").code == 0
    row = fairlane(*home, "--json", "list").document["tasks"][0]
    assert (row["id"], row["project"], row["status"]) == ("gt-abc", "gastown", "done")


@pytest.mark.parametrize("age", ["old", "new"])
def test_cool_workflow_ready_leased_parked_reset(home, tmp_path, age):
    queue = tmp_path / "queue.json"
    shutil.copy(FILES / "cool-workflow" / age / "queue.json", queue)
    before = queue.read_bytes()
    home.ask("convert", "cool-workflow", FILES / "cool-workflow", "--write")
    home.ask("import", "queue.json", queue)
    task = {"old": "q-20260130090100-002", "new": "q-20260130100000-001"}[age]
    assert home.picks() == [task]
    for wait in (1, 2, None):
        lease = home.lease()[task]
        assert home.picks() == []  # the ceiling is 1
        home.ask("release", lease, "--failed", "--reason", "exit 1")
        if wait is not None:
            assert home.wait(task) == wait
            home.later(wait)
    assert home.task(task)["reason"] == "failed: exit 1 (attempt 3 of 3)"
    assert task not in home.picks()
    home.ask("retry", task)
    found = home.task(task)
    assert (found["status"], found["failures"]) == ("queued", 0)
    assert home.picks() == [task]
    assert queue.read_bytes() == before


FORMATS = {
    "loopr": "loopr",
    "agency": "agency/project/config.yaml",
    "gastown": "gas-town",
    "cool-workflow": "cool-workflow/scheduling-policy.json",
}


@pytest.mark.parametrize("name", [*FORMATS, "agent-queue"])
def test_twice_is_as_once_and_what_was_there_is_kept(home, agent_queue, name):
    file = FILES / FORMATS[name] if name in FORMATS else agent_queue
    home.folder.mkdir()
    ours = {
        "policy.toml": 'preset = "balanced"\n',
        "fairlane.toml": "# ours\n[worker]\nslots = 1\n",
    }
    for each, text in ours.items():
        (home.folder / each).write_text(text)
    shown = home.ask("convert", name, file)
    assert (shown["changed"], shown["written"], kept(home)) == (False, [], ours)
    document = home.ask("convert", name, file, "--write")
    assert document["policy"] == shown["policy"] == (home.folder / "policy.toml").read_text()
    assert {f"{each}.bak": text for each, text in ours.items()}.items() <= kept(home).items()
    assert "# ours" in (home.folder / "fairlane.toml").read_text()
    once = (kept(home), held(home))
    again = home.ask("convert", name, file, "--write")
    assert (again["changed"], again["added"], again["written"]) == (False, 0, [])
    assert (kept(home), held(home)) == once
    Policy.load(home.folder / "policy.toml")
    home.ask("policy", "set", "caps.all=7")  # its text can be edited on


@pytest.mark.parametrize("write", [(), ("--write",)])
def test_a_bad_file_changes_nothing(home, tmp_path, write):
    file = tmp_path / "scheduling-policy.json"
    file.write_text(json.dumps({"maxConcurrent": 2.5}))
    home.policy("balanced")
    before = kept(home)
    error = home.error("convert", "cool-workflow", file, *write, code=2)
    assert error["message"] == f"{file}: maxConcurrent: not a whole number: 2.5"
    assert kept(home) == before


def test_what_is_not_known_is_named(home, tmp_path):
    error = home.error("convert", "cool-workflows", tmp_path, code=2)
    assert error["message"] == "there is no format 'cool-workflows'"
    assert error["hint"] == "Did you mean 'cool-workflow'?"
    error = home.error("convert", "loopr", tmp_path / "gone.yml", code=2)
    assert error["message"] == f"{tmp_path / 'gone.yml'}: there is no such file"


def test_a_rig_of_which_nothing_is_known_is_shown_too(home, tmp_path):
    (tmp_path / "mayor").mkdir()
    (tmp_path / "mayor" / "rigs.json").write_text('{"rigs": {"web": {"beads": null}}}')
    shown = home.run("convert", "gastown", tmp_path)
    assert "project web: no values of its own\n" in shown.out
