"""Protected files: what checks run, CI, and what a project names; case, renames and links count."""

from __future__ import annotations

import pytest

from fairlane.model.task import Check, Task
from fairlane.workspaces.work.changes import Change
from fairlane.workspaces.work.protect import Protection
from tests.workspaces.yard import Yard, git


def marked(globs: tuple[str, ...] | None, commands: list[list[str]], *paths: str) -> list[str]:
    protection = Protection(globs, commands)
    for path in paths:
        protection.look(Change(path, "M"))
    return protection.paths


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("make test", "Makefile"),
        ("make test", "makefile"),
        ("make test", "sub/GNUmakefile"),
        ("make test", "rules.mk"),
        ("npm test", "package.json"),
        ("npm test", "packages/a/package.json"),
        ("python -m pytest -q", "conftest.py"),
        ("uv run pytest", "tests/conftest.py"),
        ("tox", "PyProject.TOML"),
        ("just check", "justfile"),
        ("cargo test", "build.rs"),
        ("./gradlew test", "build.gradle.kts"),
        ("./gradlew test", "gradle/wrapper/gradle-wrapper.jar"),
        ("./scripts/check.sh --fast", "scripts/check.sh"),
        ("scripts/../tools/run", "tools/run"),
        ("python tests/run.py", "tests/run.py"),
        ("true", ".github/workflows/ci.yml"),
        ("true", ".GitHub/workflows/ci.yml"),
        ("true", ".github"),
        ("true", ".gitlab-ci.yml"),
        ("true", "Jenkinsfile"),
    ],
)
def test_what_says_whether_work_is_right(command: str, path: str) -> None:
    assert marked(None, [command.split()], path) == [path]


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("make test", "src/make.py"),
        ("pytest tests", "tests/test_login.py"),
        ("npm test", "src/index.js"),
        ("scripts/check.sh", "other/scripts/check.sh"),
        ("true", "github/x"),
        ("true", "docs/ci.md"),
        ("/usr/bin/env true", "usr/bin/env"),
    ],
)
def test_ordinary_work(command: str, path: str) -> None:
    assert marked(None, [command.split()], path) == []


def test_a_line_for_a_shell_is_read_as_words() -> None:
    command = ["sh", "-c", "cd sub && './my check' && make test # done"]
    assert marked(None, [command], "my check", "Makefile", "done") == ["my check", "Makefile"]
    assert marked(None, [["sh", "-c", "make 'unclosed"]], "Makefile") == ["Makefile"]


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-lc", "make test"],
        ["sh", "-ec", "make test"],
        ["env", "CI=1", "sh", "-c", "make test"],
        ["timeout", "60", "bash", "-c", "sh -c 'make test'"],
    ],
)
def test_so_is_one_behind_other_programs(command: list[str]) -> None:
    assert marked(None, [command], "Makefile") == ["Makefile"]


@pytest.mark.parametrize(
    ("glob", "hits", "misses"),
    [
        ("*.sql", ["a.sql", "db/b.SQL"], ["a.sql.txt"]),
        ("/*.sql", ["a.sql"], ["db/a.sql"]),
        ("db/**", ["db", "db/a", "db/a/b"], ["dbs/a", "x/db/a"]),
        ("db/", ["db/a"], ["dbx"]),
        ("src/**/api.py", ["src/api.py", "src/a/b/api.py"], ["api.py"]),
        ("file[0-9]", ["file1"], ["filex"]),
        ("file[!0-9]", ["filex"], ["file1"]),
        ("a?c", ["abc"], ["a/c", "ac"]),
        ("a.c", ["a.c"], ["abc"]),
        ("[", ["["], ["x"]),
        ("caf\u00e9", ["cafe\u0301"], ["cafe"]),
    ],
)
def test_globs_of_a_project(glob: str, hits: list[str], misses: list[str]) -> None:
    assert marked((glob,), [["make"]], *hits, *misses, "Makefile", ".github/x") == hits


def test_a_project_that_protects_nothing() -> None:
    assert marked((), [["make"]], "Makefile", ".github/x") == []


def test_both_names_of_a_rename_count() -> None:
    protection = Protection(None, [])
    protection.look(Change("ci.yml", "R", old_path=".github/ci.yml"))
    protection.look(Change(".ci/run", "R", old_path="run"))
    assert protection.paths == [".github/ci.yml", "ci.yml", "run", ".ci/run"]


@pytest.mark.slow
def test_the_record_names_them(yard: Yard) -> None:
    (yard.repo / "Makefile").write_text("test:\n\tfalse\n")
    git(yard.repo, "add", "-A")
    git(yard.repo, "commit", "-qm", "make")
    yard.change(checks=(Check("make test", ("make", "test")),))
    task = Task("t1", checks=(Check("own", ("./own",)),))
    place = yard.work(task)
    git(place.path, "mv", "Makefile", "Makefile.old")
    (place.path / "own").write_text("exit 0\n")
    assert yard.keep(task)["protected"] == ["Makefile", "Makefile.old", "own"]
    yard.change(protect=("src",))
    assert yard.keep(task)["protected"] == []
