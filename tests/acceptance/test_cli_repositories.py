"""Fields for the work itself, on the command line; and what could never work is refused in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.queue_home import Home
from tests.workspaces.yard import commit, git, make_repository


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "web")


@pytest.fixture
def web(home: Home, repo: Path) -> Home:
    """A home with a project that has a repository."""
    home.ask("project", "add", "web", "--repo", repo)
    return home


def project(home: Home) -> dict[str, object]:
    found: dict[str, object] = home.ask("project", "show", "web")["project"]
    return found


def test_every_field_of_a_project_can_be_given(web: Home) -> None:
    web.ask(
        "project", "set", "web", "--check", "make test", "--check", "npm run 'lint all'",
        "--carry", "base", "--context", "none", "--merge", "pr", "--pr", "gh pr create --fill",
        "--setup", "npm ci", "--setup-files", "package-lock.json", "--setup-files", "*.lock",
        "--protect", "ci/**", "--protect", "Makefile", "--hooks", "repo",
    )  # fmt: skip
    found = project(web)
    wanted = {
        "checks": [
            {"name": "make test", "argv": ["make", "test"], "timeout": None},
            {"name": "npm run", "argv": ["npm", "run", "lint all"], "timeout": None},
        ],
        "carry": "base", "context": "none", "merge": "pr", "hooks": "repo",
        "pr": ["gh", "pr", "create", "--fill"], "setup": ["npm", "ci"],
        "setup_files": ["package-lock.json", "*.lock"], "protect": ["ci/**", "Makefile"],
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted
    text = web.run("project", "show", "web").out
    for words in ("make test; npm run 'lint all'", "gh pr create --fill", "npm ci", "ci/**"):
        assert words in text
    web.ask("project", "set", "web", "--check", "none", "--protect", "", "--setup", "none")
    found = project(web)
    assert (found["checks"], found["protect"], found["setup"]) == ([], [], [])
    assert "protect" in web.run("project", "show", "web").out
    web.ask("project", "set", "web", "--protect", "none", "--check", "true")
    assert project(web)["protect"] is None
    web.ask("project", "set", "web", "--no-checks", "--merge", "none", "--pr", "none")
    found = project(web)
    assert (found["checks"], found["merge"], found["pr"]) == ([], None, [])


@pytest.mark.parametrize("text", ["make 'test", "", "   "])
def test_a_command_line_that_is_none_is_refused(web: Home, text: str) -> None:
    change = ("project", "set", "web")
    for words in ((*change, "--setup"), (*change, "--check"), ("add", "x", "--check")):
        error = web.error(*words, text, code=2)
        assert words[-1] in error["message"]
    error = web.error("project", "set", "web", "--check", "true", "--no-checks", code=2)
    assert error["code"] == "usage"


def test_two_ways_to_open_a_folder_are_refused(web: Home) -> None:
    error = web.error("open", "a", "--path", "--shell", code=2)
    assert (error["code"], error["message"]) == ("usage", "--path and --shell were given")


def test_checks_are_changed_by_edit_too(web: Home) -> None:
    web.ask("add", "x", "--id", "a", "--project", "web", "--check", "true", "--no-checks")
    assert web.task("a")["no_checks"] is True
    assert "not even its project's" in web.run("show", "a").out
    web.ask("edit", "a", "--check", "make test", "--checks", "--merge", "merge")
    task = web.task("a")
    assert (task["no_checks"], task["merge"]) == (False, "merge")
    assert [check["argv"] for check in task["checks"]] == [["make", "test"]]
    assert "make test" in web.run("show", "a").out
    web.ask("edit", "a", "--check", "none", "--merge", "none")
    assert (web.task("a")["checks"], web.task("a")["merge"]) == ([], "keep")


def test_a_recipe_gives_its_steps_checks(web: Home) -> None:
    (web.folder / "recipes").mkdir()
    text = (
        '[[step]]\nname = "do"\nprompt = "{prompt}"\nchecks = [["make", "test"]]\ncarry = "base"\n'
    )
    (web.folder / "recipes" / "tested.toml").write_text(text)
    web.ask("add", "Fix it", "--id", "a", "--project", "web", "--recipe", "tested")
    assert web.task("a-do")["checks"][0]["argv"] == ["make", "test"]


def test_a_bare_repository_is_refused(home: Home, repo: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(repo, "clone", "-q", "--bare", ".", str(bare))
    error = home.error("project", "add", "api", "--repo", bare)
    assert (error["code"], error["message"]) == ("bare_repository", f"{bare} is a bare repository")
    assert "git clone" in error["hint"]
    assert "api" not in [row["name"] for row in home.ask("project", "list")["projects"]]
    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / ".git").write_text(f"gitdir: {bare}\n")
    assert home.error("project", "add", "api", "--repo", hub)["code"] == "bare_repository"
    git(bare, "worktree", "add", "-q", str(tmp_path / "tree"), "main")
    home.ask("project", "add", "api", "--repo", tmp_path / "tree")


def test_a_repository_without_a_commit_is_refused(web: Home, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    before = project(web)
    error = web.error("project", "set", "web", "--repo", empty)
    assert (error["code"], error["message"]) == ("no_commit", f"{empty} has no commit yet")
    assert project(web) == before
    commit(empty, "first")
    git(empty, "pack-refs", "--all")
    web.ask("project", "set", "web", "--repo", empty)


def test_a_base_that_is_not_there_is_refused_at_add(web: Home, repo: Path) -> None:
    error = web.error("add", "x", "--project", "web", "--base", "nosuch")
    assert (error["code"], error["message"]) == ("unknown_base", f"{repo} has no branch 'nosuch'")
    assert web.ask("list")["tasks"] == []
    git(repo, "branch", "feature/x")
    git(repo, "tag", "v1")
    git(repo, "update-ref", "refs/remotes/origin/dev", "HEAD")
    here = git(repo, "rev-parse", "HEAD")
    for known in ("feature/x", "v1", "origin/dev", here, here[:9], "main~0", "fairlane/later"):
        web.add("--project", "web", "--base", known)
    git(repo, "pack-refs", "--all")
    web.add("--project", "web", "--base", "feature/x", "--merge", "merge")
    error = web.error("add", "x", "--project", "web", "--base", "v1", "--merge", "merge")
    assert error["code"] == "unknown_base"
    assert web.error("project", "set", "web", "--base", "nosuch")["code"] == "unknown_base"
    for hostile in ("../../HEAD", "/etc/passwd", "refs/../../x"):
        assert web.error("add", "x", "--project", "web", "--base", hostile, "--merge", "merge")
    last = web.add("--project", "web")
    assert web.error("edit", last, "--base", "nosuch")["code"] == "unknown_base"


def test_a_merge_without_a_branch_is_refused_at_add(web: Home, repo: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    error = web.error("add", "x", "--project", "web", "--merge", "merge")
    assert (error["code"], "--base" in error["hint"]) == ("detached", True)
    assert web.error("project", "set", "web", "--merge", "merge")["code"] == "detached"
    web.add("--project", "web")
    web.add("--project", "web", "--merge", "merge", "--base", "main")
    web.ask("project", "set", "web", "--merge", "merge", "--base", "main")
    assert web.task(web.add("--project", "web"))["merge"] == "merge"


def test_pull_requests_need_a_command(web: Home) -> None:
    error = web.error("add", "x", "--project", "web", "--merge", "pr")
    assert error["code"] == "no_pr"
    assert 'fairlane project set web --pr "gh pr create --fill"' in error["hint"]
    assert web.error("project", "set", "web", "--merge", "pr")["code"] == "no_pr"
    web.ask("project", "set", "web", "--pr", "gh pr create --fill", "--merge", "pr")
    assert web.task(web.add("--project", "web"))["merge"] == "pr"
    assert web.error("project", "set", "web", "--pr", "none")["code"] == "no_pr"


def test_what_cannot_be_read_does_not_hinder_an_add(web: Home, repo: Path) -> None:
    """It is told when the task starts, where git is asked with care."""
    (repo / ".git" / "HEAD").unlink()
    (repo / ".git" / "HEAD").symlink_to("/dev/zero")
    web.add("--project", "web", "--merge", "merge")
    web.add("--project", "web", "--base", "nosuch")
