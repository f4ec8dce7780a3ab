"""init, doctor, backup, migrate, completion, plots, and following the log in real processes."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fairlane.settings import Settings
from tests.acceptance.commands import ROOT, fairlane
from tests.waiting import LIMIT_SECONDS


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_init_makes_commented_files_and_overwrites_nothing(home, monkeypatch, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "codex").write_text("#!/bin/sh\n")
    (programs / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    document = home.ask("init")
    assert document["agents"] == [{"name": "codex", "path": str(programs / "codex")}]
    settings, policy = home.folder / "fairlane.toml", home.folder / "policy.toml"
    assert document["made"] == [str(settings), str(policy)]
    assert Settings.load(settings).agent == "codex"
    assert home.ask("policy", "check", policy)["preset"] == "balanced"
    assert {path.stat().st_mode & 0o777 for path in (settings, policy)} == {0o600}
    assert home.folder.stat().st_mode & 0o777 == 0o700
    settings.write_text("# mine\n")
    again = home.ask("init")
    assert (again["made"], again["kept"]) == ([], [str(settings), str(policy)])
    assert settings.read_text() == "# mine\n"


@pytest.mark.parametrize("name", ["fairlane.toml", "policy.toml"])
def test_what_init_comments_out_can_be_commented_in(home, name, monkeypatch):
    """Every line that shows a key is a good one."""
    monkeypatch.setenv("PATH", "")
    home.ask("init")
    lines = (home.folder / name).read_text().splitlines()
    shown = [line.removeprefix("# ") if "=" in line or "# [" in line else line for line in lines]
    whole = "\n".join(shown)
    tomllib.loads(whole)
    if name == "fairlane.toml":
        Settings.parse(tomllib.loads(whole))
    else:
        (home.folder / name).write_text(whole)
        home.ask("policy", "check", home.folder / name)


def levels(home, code):
    return {(each["what"], each["level"]) for each in home.ask("doctor", code=code)["findings"]}


def test_doctor_in_a_home_that_is_not_there_makes_nothing(home):
    assert ("home", "note") in levels(home, 0)
    assert not home.folder.exists()


def test_doctor_says_what_would_be_recovered_and_changes_nothing(home):
    home.policy("fail-closed")
    home.add("--id", "a", "--agent", "claude")
    home.lease("--worker", "far")
    home.later(600)
    home.run("plan")
    before = (files(home.folder), home.dump())
    found = {each["what"]: each for each in home.ask("doctor")["findings"]}
    assert "L1 of a ran out at 2026-01-30T12:05:00Z" in found["lease"]["message"]
    assert "far was last seen" in found["worker"]["message"]
    assert found["store"]["level"] == "fine"
    assert (files(home.folder), home.dump()) == before


def test_doctor_finds_what_is_wrong(home, monkeypatch):
    monkeypatch.setenv("PATH", "")
    home.add("--id", "a", "--agent", "claude")
    home.folder.chmod(0o755)
    (home.folder / "policy.toml").write_text("caps.all = -1\ncap.all = 2\n")
    (home.folder / "fairlane.toml").write_text("wroker = 1\n")
    found = levels(home, 1)
    assert {
        ("home", "wrong"),
        ("policy", "wrong"),
        ("settings", "wrong"),
        ("agent", "wrong"),
    } <= found
    text = home.run("doctor").out
    assert "are wrong." in text


def test_doctor_finds_damage_and_never_overwrites(home):
    home.add("--id", "a")
    store = home.folder / "fairlane.db"
    home.ask("backup")
    store.write_bytes(b"not a database" * 1000)
    assert ("store", "wrong") in levels(home, 1)
    said = home.run("--json", "status")
    assert said.code == 1
    assert "backups" in said.document["error"]["hint"]
    assert store.read_bytes() == b"not a database" * 1000


def test_a_store_elsewhere_has_its_backups_beside_it(home, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    store = tmp_path / "elsewhere" / "mine.db"
    url = f"sqlite:{store}"
    home.ask("--db", url, "add", "x")
    backup = home.ask("--db", url, "backup")["backup"]
    assert Path(backup).parent == store.parent / "backups"
    store.write_bytes(b"")
    assert backup in home.error("--db", url, "add", "y")["hint"]


def test_doctor_finds_counts_that_do_not_fit(home):
    home.add("--id", "a")
    connection = sqlite3.connect(home.folder / "fairlane.db")
    connection.execute("UPDATE lanes SET ready = 7")
    connection.commit()
    connection.close()
    assert ("store", "wrong") in levels(home, 1)


def test_backup_is_a_store_and_overwrites_nothing(home, tmp_path):
    home.add("--id", "a")
    target = tmp_path / "copy.db"
    assert home.ask("backup", target)["backup"] == str(target)
    assert home.error("backup", target)["code"] == "exists"
    rows = home.ask("--db", f"sqlite:{target}", "list")["tasks"]
    assert [row["id"] for row in rows] == ["a"]
    first, second = home.ask("backup")["backup"], home.ask("backup")["backup"]
    assert first != second
    assert home.error("backup", tmp_path / "no" / "where.db", code=2)["hint"]


def test_migrate(home):
    made = home.ask("migrate")
    assert (made["from"], made["to"] >= 1) == (None, True)
    assert home.ask("migrate")["from"] == made["to"]
    assert "latest" in home.run("migrate").out
    error = home.error("migrate", "--from", "sqlite:a", "--to", "postgresql://b", code=2)
    assert "sqlite:" in error["message"]
    connection = sqlite3.connect(home.folder / "fairlane.db")
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    assert home.error("status")["code"] == "schema_newer"
    assert ("store", "wrong") in levels(home, 1)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(home, shell):
    script = home.run("completion", shell).out
    assert f"_FAIRLANE_COMPLETE={shell}_complete" in script


def complete(words):
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    said = fairlane(_FAIRLANE_COMPLETE="bash_complete", **asked)
    return [line.partition(",")[2] for line in said.out.splitlines()]


def test_completion_knows_verbs_and_options():
    assert complete("fairlane rec") == ["reclaim"]
    assert "--held-by" in complete("fairlane list --he")
    assert complete("fairlane policy di") == ["diff"]


def test_stats_are_drawn(home, tmp_path, monkeypatch):
    home.ask("project", "add", "a-b")
    home.add("--id", "a", "--project", "a-b")
    home.ask("complete", home.lease()["a"], "--tokens", 500)
    home.later(60)
    picture = tmp_path / "stats.svg"
    assert str(picture) in home.run("stats", "--plot", picture).out
    root = ET.fromstring(picture.read_text())
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "a: succeeded" in texts
    monkeypatch.setenv("PATH", "")
    assert home.error("stats", "--plot", tmp_path / "x.png", code=2)["hint"]
    assert home.error("stats", "--plot", tmp_path / "x.gif", code=2)["hint"]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_events_are_followed_a_document_a_line_until_a_signal(tmp_path, number, code):
    """Even if whoever started the command ignores signals, as `nohup` and many a CI do."""
    home = tmp_path / "home"
    words = [
        "sh",
        "-c",
        "trap '' HUP INT TERM; exec \"$@\"",
        "sh",
        sys.executable,
        "-m",
        "fairlane",
    ]
    words += ["--home", str(home)]
    environment = {"PYTHONPATH": str(ROOT / "src"), "HOME": "/nonexistent"}
    fairlane("--home", home, "add", "x", "--id", "a")
    process = subprocess.Popen(
        [*words, "events", "--follow", "--after", "0", "--json"],
        stdout=subprocess.PIPE, env=environment, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        first = json.loads(process.stdout.readline())
        assert (first["schema"], first["kind"], first["task"]) == ("fairlane/1", "added", "a")
        fairlane("--home", home, "add", "x", "--id", "b")
        assert json.loads(process.stdout.readline())["task"] == "b"
        process.send_signal(number)
        assert process.wait(LIMIT_SECONDS) == code
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.slow
def test_a_prompt_and_a_file_come_from_standard_input(tmp_path):
    home = tmp_path / "home"
    assert fairlane("--home", home, "add", "-", "--id", "a", text="Fix\nit").code == 0
    assert fairlane("--home", home, "add", "--file", "-", text='{"id": "b"}\n\n').code == 0
    shown = fairlane("--home", home, "show", "a", "--json").document
    assert shown["task"]["prompt"] == "Fix\nit"
    listed = fairlane("--home", home, "list", "--json").document
    assert [row["id"] for row in listed["tasks"]] == ["a", "b"]
