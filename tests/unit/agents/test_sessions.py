"""Whether a program finds a session from the folder of the next attempt, and by what word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairlane.agents.contract import Agent, argv_of, shipped
from fairlane.agents.sessions import resumed_by
from fairlane.model.task import Task
from tests.sessions import claude_keeps, codex_keeps

ID = "0f3b9a52-6d1e-4c9e-9f6a-2b8f1f6f0001"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def claude(config: Path, here: Path, session: str = ID) -> str | None:
    env = {"CLAUDE_CONFIG_DIR": str(config), "HOME": "/nowhere"}
    return resumed_by(shipped()["claude"], session, env, here, here)


def test_claude_resumes_by_id_where_the_session_is_kept(config: Path, tmp_path: Path) -> None:
    here = tmp_path / "rep.o_ü 1"
    claude_keeps(config, ID, here)
    assert claude(config, here) == ID
    link = tmp_path / "link"
    here.mkdir()
    link.symlink_to(here)
    assert claude(config, link) == ID


def test_claude_resumes_by_the_file_from_any_other_folder(config: Path, tmp_path: Path) -> None:
    file = claude_keeps(config, ID, tmp_path / "elsewhere")
    word = claude(config, tmp_path / "here")
    assert word == str(file)
    argv = argv_of(shipped()["claude"], Task("t"), "go on", word)
    assert argv[-2:] == ("--resume", str(file))


def test_claude_cuts_long_folders(config: Path, tmp_path: Path) -> None:
    here = tmp_path / ("x" * 200)
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(here))[:200]
    file = config / "projects" / f"{name}-gjqccp" / f"{ID}.jsonl"
    file.parent.mkdir(parents=True)
    file.touch()
    assert claude(config, here) == ID


def test_claude_without_the_file_starts_anew(config: Path, tmp_path: Path) -> None:
    assert claude(config, tmp_path) is None
    claude_keeps(config, "another", tmp_path)
    assert claude(config, tmp_path) is None


@pytest.mark.parametrize("session", ["../../../etc/passwd", "/etc/x.jsonl", "a/b", "", "-x", "*"])
def test_no_session_leads_out_of_the_folder(config: Path, tmp_path: Path, session: str) -> None:
    claude_keeps(config, ID, tmp_path)
    assert claude(config, tmp_path, session) is None


def test_without_a_variable_it_is_the_home_of_the_agent(tmp_path: Path) -> None:
    claude_keeps(tmp_path / ".claude", ID, tmp_path)
    assert resumed_by(shipped()["claude"], ID, {"HOME": str(tmp_path)}, tmp_path, tmp_path) == ID


def test_codex_resumes_from_any_folder_where_the_file_is(config: Path, tmp_path: Path) -> None:
    env = {"CODEX_HOME": str(config)}
    codex = shipped()["codex"]
    assert resumed_by(codex, ID, env, tmp_path, tmp_path) is None
    codex_keeps(config, ID)
    assert resumed_by(codex, ID, env, tmp_path, tmp_path / "elsewhere") == ID
    assert resumed_by(codex, ID[:-1], env, tmp_path, tmp_path) is None


@pytest.mark.parametrize("name", ["gemini", "opencode"])
def test_others_resume_only_in_the_folder_where_they_were(name: str, tmp_path: Path) -> None:
    agent = shipped()[name]
    assert resumed_by(agent, ID, {}, tmp_path, tmp_path) == ID
    assert resumed_by(agent, ID, {}, tmp_path, tmp_path / "elsewhere") is None


def test_an_unknown_program_gets_the_id(tmp_path: Path) -> None:
    own = Agent("own", ("own", "{session}"), "plain")
    assert resumed_by(own, "s:1", {}, tmp_path, tmp_path / "elsewhere") == "s:1"
    assert resumed_by(own, "/etc/x.jsonl", {}, tmp_path, tmp_path) is None
    assert resumed_by(own, "--yolo", {}, tmp_path, tmp_path) is None


def test_a_loop_of_links_and_a_locked_folder_end_the_search(config: Path, tmp_path: Path) -> None:
    (config / "sessions" / "2026").mkdir(parents=True)
    (config / "sessions" / "2026" / "loop").symlink_to(config / "sessions")
    (config / "projects").mkdir()
    (config / "projects" / "loop").symlink_to(config / "projects" / "loop")
    env = {"CODEX_HOME": str(config)}
    assert resumed_by(shipped()["codex"], ID, env, tmp_path, tmp_path) is None
    assert claude(config, tmp_path) is None
    bare = replace(shipped()["claude"], config=())
    assert resumed_by(bare, ID, env, tmp_path, tmp_path) is None


def test_a_program_of_ones_own_keeps_its_sessions_where_it_likes(tmp_path: Path) -> None:
    argv = ("mine", "--resume", "{session}")
    here, before = tmp_path / "here", tmp_path / "before"
    like_claude, like_codex = (Agent("mine", argv, parser) for parser in ("claude", "codex"))
    assert resumed_by(like_claude, ID, {}, here, here) == ID
    assert resumed_by(like_claude, ID, {}, here, before) is None
    assert resumed_by(like_codex, ID, {}, here, here) == ID
    assert resumed_by(like_codex, "../x", {}, here, here) is None
