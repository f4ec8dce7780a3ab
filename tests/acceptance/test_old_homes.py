"""A home folder of the version before, under its old name, is taken in whole and once."""

from __future__ import annotations

import fcntl
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.executors.runner import process_started
from tests.acceptance.commands import fairlane

pytestmark = pytest.mark.slow

#: Written by the version before: a dump of its store, its settings, its policy.
WRITTEN = Path(__file__).parent / "old_home"
#: Waits like a runner, and has its command line.
RUNNER = "import sys; input(); 'import runner; sys.exit(runner.main())'"
OLD_STORE, OLD_SETTINGS = "fairlead.db", "fairlead.toml"


def git(repo, *words):
    identity = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    done = subprocess.run(
        ["git", "-C", str(repo), *identity, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def old_home(folder, repo="unused"):
    """The folder as the version before left it."""
    folder.mkdir(mode=0o700, parents=True)
    dump = (WRITTEN / "fairlead.sql").read_text()
    store = sqlite3.connect(folder / OLD_STORE)
    store.executescript(dump.replace("{repo}", str(repo)))
    store.execute("PRAGMA journal_mode = WAL")
    store.close()
    for name in (OLD_SETTINGS, "policy.toml"):
        shutil.copy(WRITTEN / name, folder / name)
    return folder


@pytest.fixture
def old(tmp_path):
    return old_home(tmp_path / "home")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ("add", "More"),
        ("list",),
        ("lease",),
        ("run",),
        ("status",),
        ("policy", "set", "caps.all=2"),
        ("policy", "use", "depth-first"),
        ("policy", "show"),
    ],
)
def test_no_empty_queue_is_begun_beside_an_old_one(old, words):
    before = names(old)
    said = fairlane("--home", old, *words)
    assert said.code == 1
    assert f"{old} was written by an older version" in said.err
    assert f"`fairlane --home {old} migrate` takes it in" in said.err
    assert names(old) == before


def test_doctor_names_the_command(old):
    said = fairlane("--home", old, "doctor")
    assert said.code == 1
    assert "migrate` takes it in" in " ".join(said.out.split())


@pytest.mark.parametrize("words", [("migrate",), ("init",)])
def test_it_is_taken_in_and_this_is_said(old, words):
    backups = old / "backups"
    backups.mkdir()
    (backups / "fairlead-20260101-000000.db").touch()
    said = fairlane("--home", old, *words)
    assert said.code == 0, said
    assert f"took in {old / OLD_STORE}: it is fairlane.db now" in said.err
    assert f"took in {old / OLD_SETTINGS}: it is fairlane.toml now" in said.err
    assert "fairlane.db" in names(old)
    assert not [name for name in names(old) if "fairlead" in name]
    assert names(backups) == ["fairlane-20260101-000000.db", "fairlane-schema-2-1.db"]
    assert 'agent = "demo"' in (old / "fairlane.toml").read_text()
    rows = statuses(fairlane("--home", old, "--json", "list"))
    assert len(rows) == 10
    assert (rows["api-1"], rows["bad-1"], rows["next-1"]) == ("done", "parked", "queued")
    again = fairlane("--home", old, *words)
    assert (again.code, "took in" in again.err) == (0, False)


def test_its_recorded_decisions_replay(old):
    assert fairlane("--home", old, "migrate").code == 0
    for planner in ("lanes", "reference"):
        said = fairlane("--home", old, "replay", "--all", "--planner", planner)
        assert (said.code, "8 decisions replayed, the same every time" in said.out) == (0, True)


def test_it_goes_on_where_it_stopped_after_a_crash(old):
    (old / OLD_SETTINGS).rename(old / "fairlane.toml")  # killed between the two
    said = fairlane("--home", old, "migrate")
    assert (said.code, "fairlane.db now" in said.err) == (0, True)


def test_a_damaged_old_store_is_left_alone(old):
    with (old / OLD_STORE).open("r+b") as file:
        file.seek(5000)
        file.write(bytes(3000))
    before = (old / OLD_STORE).read_bytes()
    said = fairlane("--home", old, "migrate")
    assert (said.code, "is damaged" in said.err) == (1, True)
    assert (old / OLD_STORE).read_bytes() == before


def test_it_is_refused_while_its_agents_run(old):
    with subprocess.Popen([sys.executable, "-c", RUNNER], stdin=subprocess.PIPE) as agent:
        runs = old / "runs" / "pull-2" / "1"
        runs.mkdir(parents=True)
        alive = {"pid": agent.pid, "pid_started": process_started(agent.pid)}
        (runs / "runner.json").write_text(json.dumps(alive))
        before = names(old)
        for words in (("migrate",), ("init",), ("up", "--detach")):
            said = fairlane("--home", old, *words)
            assert said.code == 1
            assert "agents that the older version started still run: pull-2" in said.err
            assert names(old) == before
        agent.communicate(b"\n")
    assert fairlane("--home", old, "migrate").code == 0


def test_it_is_refused_while_its_daemon_runs(old):
    with (old / "daemon.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (old / "daemon.json").write_text(json.dumps({"pid": 4711, "what": "up"}))
        said = fairlane("--home", old, "migrate")
        assert said.code == 1
        assert f"the older version still schedules {old} (pid 4711)" in said.err
        assert "kill 4711" in said.err
    assert (old / OLD_STORE).exists()


def test_it_is_refused_while_somebody_has_its_store_open(old):
    other = sqlite3.connect(old / OLD_STORE)
    other.execute("SELECT count(*) FROM tasks").fetchone()
    said = fairlane("--home", old, "migrate")
    assert said.code == 75
    assert (old / OLD_STORE).exists()
    other.close()
    assert fairlane("--home", old, "migrate").code == 0


def test_the_users_own_home_moves_with_its_worktrees(tmp_path):
    """The default folder has a new name too; work that began there stays on its branch."""
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    git(repo, "commit", "-q", "--allow-empty", "-m", "first")
    former = old_home(tmp_path / "state" / "fairlead", repo)
    worktree = former / "worktrees" / "site" / "fix-1"
    git(repo, "worktree", "add", "-q", "-b", "fairlead/fix-1", str(worktree))
    git(repo, "config", "branch.fairlead/fix-1.fairlead-base", "main")

    assert fairlane("policy", "set", "caps.all=2", **state).code == 1
    refused = fairlane("list", **state)
    assert (refused.code, "`fairlane migrate` takes it in" in refused.err) == (1, True)
    home = tmp_path / "state" / "fairlane"
    said = fairlane("migrate", **state)
    assert (said.code, f"moved {former} to {home}" in said.err) == (0, True), said
    assert not former.exists()
    again = fairlane("add", "--id", "fix-1", "--project", "site", "--again", "--", "true", **state)
    assert again.code == 0, again
    assert fairlane("run", "--once", **state).code == 0
    assert statuses(fairlane("--json", "list", **state))["fix-1"] == "done"
    assert git(repo, "branch", "--format=%(refname:short)").split() == ["fairlead/fix-1", "main"]
    moved = home / "worktrees" / "site" / "fix-1"
    assert git(moved, "branch", "--show-current") == "fairlead/fix-1"
    assert (moved / "one.txt").read_text() == "one\n"
    listed = fairlane("workspaces", **state)
    assert (listed.code, "fairlead/fix-1" in listed.out) == (0, True), listed


def statuses(said):
    return {row["id"]: row["status"] for row in said.document["tasks"]}
