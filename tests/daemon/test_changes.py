"""What agents changed, from `fairlane run` to `diff`, `open`, `show` and HTTP, with real git."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane.engine.compaction import compact
from fairlane.engine.forget import forget_compacted
from tests import warm
from tests.daemon.world import World, until
from tests.http.served import serving
from tests.workspaces.yard import commit, git, make_repository

pytestmark = pytest.mark.slow

HOSTILE = 'printf "x\\n" > "$(printf "evil\\033[2J\\nname")"; printf "a\\033[31m\\r\\n" > plain'


@pytest.fixture
def repo(world: World, tmp_path: Path) -> Path:
    folder = make_repository(tmp_path / "web")
    world.fairlane("project", "add", "web", "--repo", str(folder))
    return folder


def task(name: str, script: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "project": "web", "command": ["sh", "-c", script], **fields}


def said(
    world: World, *words: str, **env: str
) -> subprocess.CompletedProcess[str]:  # what a person sees
    chosen = {name: value for name, value in os.environ.items() if name not in ("PAGER", "COLUMNS")}
    done = warm.run(["--home", str(world.home), *words], chosen | env, Path.cwd())
    out, err = (text.decode().replace("\r\n", "\n") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(words, done.returncode, out, err)


def error(world: World, *words: str) -> tuple[int, str]:
    done = said(world, "--json", *words)
    return done.returncode, json.loads(done.stdout)["error"]["code"]


def paths(document: dict[str, Any]) -> list[str]:
    return [row["path"] for row in document["files"]]


def test_show_and_diff_of_work_that_was_merged_and_removed(world: World, repo: Path) -> None:
    script = "echo two >> README; git commit -qam 'by the agent'; echo rest > rest"
    world.add(task("t1", script, merge="merge"), task("t2", "echo x > kept"))
    world.run()
    world.fairlane("workspaces", "clean")
    assert not (world.home / "worktrees" / "web" / "t1").exists()
    shown = world.fairlane("show", "t1")
    work, state = shown["work"], shown["merge_state"]
    assert (work["repo"], work["branch"], work["base"]) == (str(repo), "fairlane/t1", "main")
    assert work["path"] == str(world.home / "worktrees" / "web" / "t1")
    assert [(row["path"], row["change"]) for row in work["files"]] == [
        ("README", "M"),
        ("rest", "A"),
    ]
    assert [row["author"] for row in work["commits"]] == ["Ada", "Ada"]
    assert [row["subject"] for row in work["commits"]][1] == "by the agent"
    assert (state["state"], state["mode"], state["base"]) == ("merged", "merge", "main")
    assert state["commit"] == git(repo, "rev-parse", "main") == state["head"]
    assert (shown["question"], shown["approval"], shown["schedule"]) == (None, None, None)
    assert shown["checks"] == []
    diff = world.fairlane("diff", "t1")
    assert (diff["start"], diff["head"]) == (work["start"], work["head"])
    assert paths(diff) == ["README", "rest"]
    assert paths(world.fairlane("diff", "t1", "--stat", "--", "rest")) == ["rest"]
    rows = {row["id"]: row for row in world.fairlane("list")["tasks"]}
    assert (rows["t1"]["merge_state"], rows["t2"]["merge_state"]) == ("merged", "none")
    assert not rows["t1"]["needs_person"]
    assert rows["t1"]["starts"] is None


def test_files_that_a_record_does_not_name_are_counted(world: World, repo: Path) -> None:
    world.add(task("t1", "for n in $(seq 1003); do echo $n > $n; done"))
    world.run()
    work = world.fairlane("show", "t1")["work"]
    assert (len(work["files"]), work["more_files"]) == (1000, 3)
    text = said(world, "show", "t1").stdout
    assert "changed    1,003 files, +1,000 -0 in the first 1,000\n" in text
    assert "… 993 more: fairlane diff t1 --stat\n" in text
    stat = said(world, "diff", "t1", "--stat").stdout
    assert stat.endswith(" 1,003 files changed, 1,003 added (+), 0 removed (-)\n")


def test_a_failed_attempt_and_one_that_runs(world: World, repo: Path) -> None:
    world.add(task("t1", "echo $FAIRLANE_ATTEMPT > half; exit 1", max_attempts=2))
    world.run()
    for attempt in ("1", "2"):
        (row,) = world.fairlane("diff", "t1", "--attempt", attempt)["files"]
        assert f"+{attempt}\n" in row["patch"]
    shown = world.fairlane("show", "t1")
    assert shown["work"]["dirty"]
    assert shown["task"]["needs_person"]
    assert error(world, "diff", "t1", "--attempt", "3") == (1, "no_attempt")
    waiting = world.waiting("t2", "echo so far > sofar;")
    world.add({**waiting, "project": "web"})
    world.up()
    until((world.marks / "t2").exists)
    folder = world.home / "worktrees" / "web" / "t2"
    until((folder / "sofar").exists)
    assert paths(world.fairlane("diff", "t2")) == ["sofar"]
    assert world.fairlane("open", "t2")["path"] == str(folder)
    assert git(folder, "status", "--porcelain") == "?? sofar"
    shown = world.fairlane("show", "t2")
    assert (shown["work"]["path"], shown["work"]["head"]) == (str(folder), None)
    world.let_go("t2")
    world.fairlane("down", "--stop-agents")


def test_what_is_shown_moves_no_cursor(world: World, repo: Path) -> None:
    world.add(task("t1", f"{HOSTILE}; git add -A; git commit -qm \"$(printf 'x\\033[31m')\""))
    world.run()
    for words in (("diff", "t1"), ("diff", "t1", "--stat"), ("show", "t1")):
        done = said(world, *words)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout + done.stderr
        assert "\r" not in done.stdout
    text = said(world, "diff", "t1").stdout
    assert "+a\\x1b[31m\n" in text  # a carriage return before a line's end is a line's end
    found = {row["path"]: row["patch"] for row in world.fairlane("diff", "t1")["files"]}
    assert "+a\x1b[31m\r\n" in found["plain"]
    assert "evil\x1b[2J\nname" in found
    stat = said(world, "diff", "t1", "--stat").stdout.splitlines()
    assert stat[-1] == " 2 files changed, 2 added (+), 0 removed (-)"
    assert all(len(line) <= 80 for line in stat)


def test_git_applies_a_diff_from_a_pipe(world: World, repo: Path) -> None:
    for name, text in {"crlf": b"a\r\nb\r\n", "open": b"x"}.items():
        (repo / name).write_bytes(text)
    commit(repo, "Lines of two kinds")
    world.add(task("t1", r"printf 'a\r\nB\r\n' > crlf; printf y > open; mv README 'read me'"))
    world.run()
    patch = warm.run(["--home", str(world.home), "diff", "t1"], os.environ, Path.cwd()).stdout
    subprocess.run(["git", "-C", str(repo), "apply"], input=patch, check=True)
    assert (repo / "crlf").read_bytes() == b"a\r\nB\r\n"
    assert (repo / "open").read_bytes() == b"y"
    assert (repo / "read me").exists()


def test_a_pager_reads_it_on_a_terminal(world: World, repo: Path, tmp_path: Path) -> None:
    world.add(task("t1", "echo two >> README"))
    world.run()
    pager = tmp_path / "a pager"
    pager.write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/words"\ncat > "{tmp_path}/paged"\n')
    pager.chmod(0o755)
    main, side = pty.openpty()
    env = {**os.environ, "PAGER": f"'{pager}' '; rm' $HOME", "TERM": "xterm"}
    env.pop("NO_COLOR", None)
    try:
        subprocess.run(
            [sys.executable, "-m", "fairlane", "--home", str(world.home), "diff", "t1"],
            stdin=subprocess.DEVNULL, stdout=side, stderr=side, env=env, check=True,
        )  # fmt: skip
    finally:
        os.close(side)
        os.close(main)
    assert (tmp_path / "words").read_text() == "; rm $HOME\n"  # no shell has read it
    assert "\x1b[32m+two\x1b[0m\n" in (tmp_path / "paged").read_text()


def test_open(world: World, repo: Path, tmp_path: Path) -> None:
    script = "echo evil > .envrc; echo x > x"
    world.add(task("t1", script), {"id": "plain", "command": ["true"]})
    world.run()
    folder = world.home / "worktrees" / "web" / "t1"
    done = said(world, "open", "t1")
    assert done.stdout == f"{folder}\n"
    assert ".envrc" in done.stderr
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\npwd; echo "$@"; exit 7\n')
    shell.chmod(0o755)
    done = said(world, "open", "t1", "--shell", SHELL=str(shell))
    assert (done.returncode, done.stdout) == (7, f"{folder}\n\n")
    done = said(world, "open", "t1", "--editor", VISUAL="", EDITOR=f"{shell} -w 'two words'")
    assert done.stdout == f"{folder}\n-w two words {folder}\n"
    assert said(world, "open", "t1", "--editor", VISUAL="", EDITOR="").returncode == 2
    lease = {"FAIRLANE_LEASE": "L1"}
    assert "not inside an attempt" in said(world, "open", "t1", "--shell", **lease).stderr
    assert said(world, "open", "plain").stdout == f"{world.home}/work/plain\n"
    words = ["--json", "--url", "http://127.0.0.1:1", "open", "t1"]
    url = warm.run(words, os.environ, Path.cwd())
    assert (url.returncode, json.loads(url.stdout)["error"]["code"]) == (1, "elsewhere")
    (folder / ".git").unlink()
    (folder / ".git").symlink_to(repo / ".git")
    assert error(world, "open", "t1") == (1, "unsafe_workspace")
    shutil.rmtree(folder)
    assert error(world, "open", "t1") == (1, "no_work")
    assert "git -C" in said(world, "open", "t1").stderr
    copy = world.fairlane("open", "t1", "--fetch")["path"]
    assert (Path(copy) / "x").read_text() == "x\n"


def test_a_holder_outside_worked_elsewhere(world: World, repo: Path) -> None:
    world.add(task("t1", "true"))
    world.fairlane("lease", "--limit", "1", "--worker", "box")
    assert error(world, "open", "t1") == (1, "elsewhere")
    world.add(task("later", "true"))
    assert error(world, "open", "later") == (1, "no_work")
    assert error(world, "diff", "t1") == (1, "elsewhere")
    world.fairlane("complete", "L1")
    assert error(world, "diff", "t1") == (1, "no_work")
    assert error(world, "diff", "nobody") == (1, "unknown_task")


def test_show_survives_a_repository_that_is_away(world: World, repo: Path) -> None:
    world.add(task("t1", "echo x > x"))
    world.run()
    repo.rename(repo.with_name("moved"))
    shown = world.fairlane("show", "t1")
    assert shown["work"]["commits"] == []
    assert [row["path"] for row in shown["work"]["files"]] == ["x"]
    assert error(world, "diff", "t1") == (1, "no_repo")


def test_a_conflict_needs_a_person(world: World, repo: Path) -> None:
    world.add({**world.waiting("t1", "echo theirs > README;"), "project": "web", "merge": "merge"})
    world.up()
    until((world.home / "worktrees" / "web" / "t1" / "README").is_file)
    until((world.marks / "t1").exists)
    (repo / "README").write_text("ours\n")
    commit(repo, "meanwhile")
    world.let_go("t1")
    until(lambda: world.statuses()["t1"] == "parked")
    shown = world.fairlane("show", "t1")
    assert shown["merge_state"]["state"] == "conflict"
    assert shown["merge_state"]["files"] == ["README"]
    assert shown["task"]["merge_state"] == "conflict"
    assert shown["task"]["needs_person"]
    assert [row["kind"] for row in shown["events"]][-3:] == ["failed", "parked", "merge_conflict"]
    assert shown["events"][-1]["data"]["files"] == ["README"]
    assert paths(world.fairlane("diff", "t1")) == ["README"]
    world.fairlane("down")


def test_work_that_waits_for_approval_needs_a_person(world: World, repo: Path) -> None:
    world.fairlane("project", "set", "web", "--protect", "README")
    world.add(task("t1", "echo two >> README", merge="merge"), task("t2", "echo x > y"))
    world.run()
    needs = {row["id"]: row["needs_person"] for row in world.fairlane("list")["tasks"]}
    assert needs == {"t1": True, "t2": False}
    assert said(world, "list").stdout.count("not merged by Fairlane") == 1
    (need,) = world.fairlane("summary")["needs_person"]
    why = "done, but not merged by Fairlane: it changes protected files: README"
    assert need == {"what": "merge:t1", "why": why}
    assert f"  t1: {why}\n    fairlane diff t1\n" in said(world, "summary").stdout


def test_workspaces_lists_paths(world: World, repo: Path) -> None:
    world.add(task("t1", "echo x > x"))
    world.run()
    text = said(world, "workspaces").stdout
    assert f"    {world.home}/worktrees/web/t1\n" in text
    assert "web/t1 on fairlane/t1: its work is not merged into main" in text


def test_over_http(world: World, repo: Path) -> None:
    world.add(task("t1", "echo one > one; echo two > two"))
    world.run()
    with serving(world.home) as server:
        whole = server.ask("GET", "/tasks/t1/diff")
        assert whole == world.fairlane("diff", "t1")
        assert paths(server.ask("GET", "/tasks/t1/diff?files=two&stat=true")) == ["two"]
        reply = server.call("GET", "/api/v1/tasks/t1/diff?attempt=7")
        assert (reply.status, reply.code) == (404, "no_attempt")


def test_doctor_tells_how_much_is_kept(world: World, repo: Path) -> None:
    world.add(task("t1", "echo x > x; echo said", checks=[["sh", "-c", "echo checked"]]))
    world.run()
    found = {row["what"]: row["message"] for row in world.fairlane("doctor")["findings"]}
    assert found["keep_refs"] == f"1 in {repo}"
    sizes = {name: float(found[name].split()[0]) for name in ("run_folders", "copies")}
    assert sizes["run_folders"] > sizes["copies"] == 0
    assert found["transcripts"].endswith("KiB")
    assert found["check_logs"].endswith("KiB")


def test_run_folders_and_copies_go_with_the_history(world: World, repo: Path) -> None:
    world.policy('history.keep = "0s"\n')
    world.add(task("t1", "echo x > x"), task("t2", "exit 1", max_attempts=1))
    world.run()
    outside = world.home.parent / "outside"
    for folder in (outside, world.home / "open" / "t1", world.home / "runs" / "stranger"):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    (world.home / "runs" / "t1" / "link").symlink_to(outside)
    with world.context() as context:
        compact(context)
        forget_compacted(context, 0)
    assert sorted(each.name for each in (world.home / "runs").iterdir()) == ["stranger", "t2"]
    assert list((world.home / "open").iterdir()) == []
    assert (outside / "file").exists()


def test_git_forgets_with_the_history(world: World, repo: Path) -> None:
    world.policy('history.keep = "0s"\n')
    world.add(task("t1", "echo x > x"), task("t2", "exit 1", max_attempts=1))
    world.run()
    git(repo, "update-ref", "refs/fairlane/keep/other/1", "HEAD")
    refs = git(repo, "for-each-ref", "--format=%(refname)", "refs/fairlane").splitlines()
    assert refs == [f"refs/fairlane/keep/{name}/1" for name in ("other", "t1", "t2")]
    with world.context() as context:
        compact(context)
        forget_compacted(context, 0)
    refs = git(repo, "for-each-ref", "--format=%(refname)", "refs/fairlane").splitlines()
    assert refs == ["refs/fairlane/keep/other/1", "refs/fairlane/keep/t2/1"]
