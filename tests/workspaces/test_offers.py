"""A branch is pushed, and the project's own command opens a pull request for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlane import workspaces
from fairlane.model.errors import FairlaneError
from fairlane.model.task import Task
from fairlane.workspaces.finish import MergeRecord, deliver
from fairlane.workspaces.work import keep_work
from tests.workspaces.hostile import Hostile
from tests.workspaces.yard import Yard, commit, git

pytestmark = pytest.mark.slow

TASK = Task("t1", title="Fix the login", merge="pr")
FORGE = """#!/bin/sh
# A stand-in for the command of a forge: it writes down what it was given and where it runs.
{ pwd; printf '%s\\n' "$@"; } > "$TOLD"
git rev-parse --abbrev-ref HEAD >> "$TOLD"
git ls-remote --heads origin >> "$TOLD"
echo "Creating pull request" >&2
echo https://forge.example/web/pull/1
"""


@pytest.fixture(params=["worktree", "clone"])
def forge(
    request: pytest.FixtureRequest, yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Yard:
    """A yard whose repository has a remote, and a command that opens pull requests."""
    yard.workspaces(mode=request.param)
    add_remote(yard, tmp_path)
    program = tmp_path / "bin" / "forge"
    program.parent.mkdir()
    program.write_text(FORGE)
    program.chmod(0o755)
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    yard.change(pr=(str(program), "pr", "--head={branch}", "--base", "{base}", "{title}"))
    return yard


def add_remote(yard: Yard, root: Path) -> Path:
    remote = root / "remote.git"
    git(yard.repo, "clone", "-q", "--bare", ".", str(remote))
    git(yard.repo, "remote", "add", "origin", f"file://{remote}")
    return remote


def offered(yard: Yard, task: Task = TASK) -> MergeRecord:
    """What becomes of work that was kept."""
    given = (yard.home, yard.settings, yard.project, task, None, False)
    work = keep_work(*given, attempt=1, success=True)
    assert work is not None
    return deliver(*given, work)


def test_the_branch_is_pushed_and_then_offered(forge: Yard, tmp_path: Path) -> None:
    place = forge.work(TASK)
    merge = offered(forge)
    assert (merge["state"], merge["url"]) == ("offered", "https://forge.example/web/pull/1")
    head = git(forge.repo, "rev-parse", "fairlane/t1")
    assert git(tmp_path / "remote.git", "rev-parse", "fairlane/t1") == head
    where, *words = (tmp_path / "told").read_text().splitlines()
    assert Path(where) == forge.repo
    assert Path(where) != place.path
    given = ["pr", "--head=fairlane/t1", "--base", "main", "Fix the login", "fairlane/t1"]
    assert words[:6] == given
    assert f"{head}\trefs/heads/fairlane/t1" in words[6:]  # it was there before the command ran
    assert forge.log("main") == ["first"]


def test_a_value_never_becomes_an_option_or_another_value(forge: Yard, tmp_path: Path) -> None:
    task = Task("t1", title="--web {branch}; rm -rf $HOME\x1b[31m\nmore", merge="pr")
    forge.work(task)
    assert offered(forge, task)["state"] == "offered"
    words = (tmp_path / "told").read_text().splitlines()
    assert words[5] == "web {branch}; rm -rf $HOME\\x1b[31m\\nmore"


def test_the_last_line_is_no_address(forge: Yard) -> None:
    forge.change(pr=("sh", "-c", "echo https://forge.example/1; echo done"))
    forge.work(TASK)
    merge = offered(forge)
    assert (merge["state"], merge["url"]) == ("offered", None)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ("sh", "-c", "echo first; echo 'no \x1b[31mlogin' >&2; echo last >&2; exit 3"),
            "sh: exit 3: first | no \\x1b[31mlogin | last",
        ),
        (("sh", "-c", "exit 3"), "sh: exit 3: it printed nothing"),
        (("sh", "-c", "seq 100000 >&2; exit 1"), "99999 | 100000"),
        (("no-such-program",), "no-such-program: No such file"),
    ],
)
def test_a_failure_is_told_whole(forge: Yard, command: tuple[str, ...], words: str) -> None:
    forge.work(TASK)
    forge.change(pr=command)
    merge = offered(forge)
    assert (merge["state"], merge["url"]) == ("failed", None)
    assert words in merge["detail"]
    assert re.search(rf"`fairlane (retry {TASK.id}|project set web --pr .*)`", merge["detail"])
    assert len(merge["detail"]) < 3000
    assert forge.finish(TASK)  # parks


def test_without_a_remote_nothing_starts(yard: Yard) -> None:
    yard.change(pr=("true",))
    with pytest.raises(FairlaneError, match="no remote to push to") as caught:
        yard.prepare(TASK)
    assert caught.value.error_code == "no_remote"
    assert "remote add origin" in caught.value.hint


def test_the_remote_of_the_base_branch_is_taken(yard: Yard, tmp_path: Path) -> None:
    other = tmp_path / "fork.git"
    add_remote(yard, tmp_path)
    git(yard.repo, "clone", "-q", "--bare", ".", str(other))
    git(yard.repo, "remote", "add", "fork", str(other))
    git(yard.repo, "config", "branch.main.remote", "fork")
    yard.change(pr=("true",))
    yard.work(TASK)
    assert offered(yard)["state"] == "offered"
    assert git(other, "rev-parse", "fairlane/t1") == git(yard.repo, "rev-parse", "fairlane/t1")


def test_what_was_pushed_before_is_replaced_but_not_what_others_pushed(
    forge: Yard, tmp_path: Path
) -> None:
    place = forge.work(TASK)
    assert offered(forge)["state"] == "offered"
    git(place.path, *WHO, "commit", "-q", "--amend", "-m", "again")
    assert offered(forge)["state"] == "offered"
    remote, mine = tmp_path / "remote.git", tmp_path / "mine"
    assert git(remote, "log", "-1", "--format=%s", "fairlane/t1") == "again"
    git(tmp_path, "clone", "-q", "-b", "fairlane/t1", str(remote), str(mine))
    new = commit(mine, "by a person")
    git(mine, "push", "-q", "origin", "fairlane/t1")
    git(place.path, *WHO, "commit", "-q", "--amend", "-m", "once more")
    merge = offered(forge)
    assert merge["state"] == "failed"
    assert "stale info" in merge["detail"]
    assert git(remote, "rev-parse", "fairlane/t1") == new


WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def test_a_push_that_is_refused_is_told_whole(forge: Yard, tmp_path: Path) -> None:
    hook = tmp_path / "remote.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho branch names must begin with feature/ >&2\nexit 1\n")
    hook.chmod(0o755)
    forge.work(TASK)
    merge = offered(forge)
    assert merge["state"] == "failed"
    assert "branch names must begin with feature/" in merge["detail"]


@pytest.mark.parametrize("key", ["url", "pushurl"])
def test_an_agent_does_not_choose_where_it_is_pushed(hostile: Hostile, key: str) -> None:
    yard = hostile.yard
    remote = add_remote(yard, yard.home.parent)
    yard.change(pr=("true",))
    yard.work(TASK)
    for name in ("pre-receive", "update", "post-receive"):
        hook = hostile.other / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(hostile.program.read_text())
        hook.chmod(0o755)
    git(yard.repo, "config", f"remote.origin.{key}", str(hostile.other))
    merge = offered(yard)
    assert merge["state"] == "failed"
    assert "it led to" in merge["detail"]
    hostile.assert_harmless()
    workspaces.forget(yard.home, yard.repo)  # a person names the repository anew
    git(yard.repo, "config", "remote.origin.url", str(remote))
    if key == "pushurl":
        git(yard.repo, "config", "--unset-all", "remote.origin.pushurl")
    assert offered(yard)["state"] == "offered"


def test_programs_of_the_repository_do_not_run(hostile: Hostile) -> None:
    yard = hostile.yard
    add_remote(yard, yard.home.parent)
    yard.change(pr=("git", "push", "origin", "fairlane/t1"))
    yard.work(TASK)
    hostile.hooks(hostile.common / "hooks")
    (hostile.common / "hooks" / "pre-push").write_text(hostile.program.read_text())
    (hostile.common / "hooks" / "pre-push").chmod(0o755)
    hostile.config(
        "core.sshCommand", "core.fsmonitor", "credential.helper", "remote.origin.receivepack",
        "core.askPass", "push.gpgSign=if-asked", "gpg.program",
    )()  # fmt: skip
    assert offered(yard)["state"] == "offered"
    hostile.assert_harmless()


def test_a_remote_cannot_be_a_program(hostile: Hostile) -> None:
    yard = hostile.yard
    git(yard.repo, "remote", "add", "origin", f"ext::{hostile.program}")
    git(yard.repo, "config", "protocol.ext.allow", "always")
    yard.change(pr=("true",))
    yard.work(TASK)
    merge = offered(yard)
    assert merge["state"] == "failed"
    assert "transport 'ext' not allowed" in merge["detail"]
    hostile.assert_harmless()
