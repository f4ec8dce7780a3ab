"""Whatever bytes an agent writes into the files of git that Fairlane reads: refused, or read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fairlane.model.errors import FairlaneError
from fairlane.workspaces import clone, config, git, plain_files, repository
from fairlane.workspaces.plain_files import NotPlain

pytestmark = pytest.mark.slow

WORDS = (
    "gitdir: ", "ref: refs/heads/", "..", "/", "\n", "\0", "x" * 300, "é", "#", "[core]\n", "=",
    "[include]\npath=/dev/zero\n", '[filter "x"]\nclean=evil\n', "a" * 40, " ", "\r", "\\", '"',
    "[core]\nfsmonitor=evil\nhooksPath=evil\n", "extensions", '[remote "a.b"]\nurl=x\n',
)  # fmt: skip
BYTES = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from(WORDS), max_size=12).map(lambda w: "".join(w).encode()),
)
FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@contextmanager
def repository_with(name: str, data: bytes) -> Iterator[Path]:
    """The least that git takes for a repository, with one file of the agent's."""
    with TemporaryDirectory() as root:
        folder = Path(root).resolve() / "web"
        for part in ("objects/info", "refs/heads", "logs", "worktrees"):
            (folder / ".git" / part).mkdir(parents=True)
        (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (folder / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
        if name == ".git":
            (folder / ".git").rename(folder / "kept")
            (folder / ".git").write_bytes(data)
        else:
            (folder / ".git" / name).write_bytes(data)
        yield folder


@pytest.mark.parametrize("name", [".git", "config", "objects/info/alternates", "commondir"])
@FEW
@given(data=BYTES)
@example(data=b"gitdir: " + b"x" * 4000)
@example(data=b"gitdir: ../../../../../../etc")
def test_a_repository_is_opened_or_refused(name: str, data: bytes) -> None:
    with repository_with(name, data) as folder, TemporaryDirectory() as home:
        try:
            found = repository.open_at(Path(home), folder)
        except FairlaneError:
            return
        if found is not None:
            text = (found.ours / "config").read_text("utf-8", "surrogateescape")
            assert "evil" not in text
            assert not re.search(r"(?i)\[include|hookspath|fsmonitor|\bclean\b", text)


NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,5}", fullmatch=True)
WITHIN = st.text(
    st.characters(blacklist_characters="\n\0", blacklist_categories=["Cs"]), min_size=1, max_size=8
)
VALUES = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=12)


@FEW
@given(st.lists(st.tuples(NAMES, st.none() | WITHIN, NAMES, VALUES), max_size=6))
@example([("a", "\t", "a", "\t")])
def test_a_configuration_that_is_written_says_what_it_should(
    rows: list[tuple[str, str | None, str, str]],
) -> None:
    pairs = [
        (f"{section}.{key}" if within is None else f"{section}.{within}.{key}", value)
        for section, within, key, value in rows
    ]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config"
        path.write_bytes(config.text_of(pairs).encode())
        assert config._listed(path) == pairs


@FEW
@given(packed=BYTES, reference=BYTES, head=BYTES)
def test_references_of_a_clone_are_commits_or_refused(
    packed: bytes, reference: bytes, head: bytes
) -> None:
    with repository_with("packed-refs", packed) as folder:
        (folder / ".git" / "refs" / "heads" / "x").write_bytes(reference)
        (folder / ".git" / "HEAD").write_bytes(head)
        try:
            commits = clone.commits_of(folder)
            branch = clone.branch_of(folder)
        except NotPlain:
            return
        assert all(
            re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", commit) for commit in commits.values()
        )
        assert branch is None or branch.isprintable()


@FEW
@given(data=BYTES)
def test_a_line_is_one_line(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        with suppress(NotPlain):
            assert not set(plain_files.line_of(path)) & {"\n", "\0"}


def test_git_gets_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_PARAMETERS", "GIT_EXEC_PATH"):
        monkeypatch.setenv(name, "evil")
    assert "evil" not in git.environment().values()
