"""Files that are no files, or have no end: every way in names the limit and changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.careful_files import read_file
from fairlane.intake import recipes, templates
from fairlane.model.errors import Invalid, Refused
from fairlane.model.project import Project
from tests.acceptance.commands import fairlane
from tests.waiting import LIMIT_SECONDS

#: Ways in: the words of a command in which FILE is the file; cards have their own tests.
WAYS = {
    "add --file": ("add", "--file", "FILE"),
    "add --prompt-file": ("add", "--prompt-file", "FILE"),
    "group add --file": ("group", "add", "g", "--file", "FILE"),
    "complete --result": ("complete", "no-lease", "--result", "FILE"),
    "import jsonl": ("import", "jsonl", "FILE"),
    "import beads": ("import", "beads", "FILE"),
    "import taskmaster": ("import", "taskmaster", "FILE"),
    "import queue.json": ("import", "queue.json", "FILE"),
    "import github": ("import", "github", "FILE"),
    "import spec-kit": ("import", "spec-kit", "FILE"),
    "import backlog": ("import", "backlog", "FILE"),
    "plan --scenario": ("plan", "--scenario", "FILE"),
    "policy check": ("policy", "check", "FILE"),
    "convert": ("convert", "agency", "FILE"),
}


@pytest.fixture
def traps(tmp_path: Path) -> dict[str, Path]:
    """What can be given in place of a file."""
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(1_000_000_000)
    return {"pipe": pipe, "device": Path("/dev/zero"), "large": large}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_what_is_no_file_or_too_large_is_refused(way, traps, tmp_path) -> None:
    for what, path in traps.items():
        words = [str(path) if word == "FILE" else word for word in WAYS[way]]
        said = fairlane("--home", tmp_path / "home", *words)
        assert said.code in (1, 2), (what, said)
        assert "Traceback" not in said.err
        expected = "it has more than " if what == "large" else f"it is a {what}, not a file"
        assert expected in said.err + said.out, (what, said)
        if what == "large":
            assert "000,000 bytes" in said.err + said.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("add", "--file", "-"),
        ("add", "-"),
        ("add", "--prompt-file", "-"),
        ("import", "jsonl", "-"),
        ("plan", "--scenario", "-"),
        ("group", "add", "g", "--file", "-"),
    ],
)
def test_endless_standard_input_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            [sys.executable, "-m", "fairlane", "--home", str(tmp_path / "home"), *words],
            stdin=endless, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "standard input: cannot be read: it has more than " in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fairlane.toml", "policy.toml"])
@pytest.mark.parametrize("what", ["pipe", "device", "large"])
def test_settings_and_policy_are_files(name, what, traps, tmp_path) -> None:
    home = tmp_path / "home"
    home.mkdir(0o700)
    (home / name).symlink_to(traps[what])
    for words, codes in ((("status",), (0, 2)), (("run", "--once"), (2,))):
        said = fairlane("--home", home, *words)
        assert said.code in codes
        assert f"{home / name}: cannot be read: it " in said.out + said.err


@pytest.mark.slow
def test_a_card_that_is_a_pipe_is_named_and_the_others_come_in(tmp_path: Path) -> None:
    folder = tmp_path / "board" / "phase-1"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "1-pipe.md")
    (folder / "2-good.md").write_text("---\ntitle: Good\nagent_flow: build\n---\n\nDo it.\n")
    said = fairlane("--home", tmp_path / "home", "import", "cards", tmp_path / "board")
    assert "it is a pipe, not a file" in said.out + said.err
    shown = fairlane("--home", tmp_path / "home", "list", "--json")
    assert [task["title"] for task in shown.document["tasks"]] == ["2-good"]


def test_templates_and_recipes_are_files(tmp_path: Path) -> None:
    for folder, name in (("templates", "t.md"), ("recipes", "r.toml")):
        (tmp_path / folder).mkdir()
        os.mkfifo(tmp_path / folder / name)
    with pytest.raises(Refused, match="it is a pipe, not a file"):
        templates.find("t", Project("p"), tmp_path)
    with pytest.raises(Invalid, match="it is a pipe, not a file"):
        recipes.find("r", None, tmp_path)


def test_the_limit_holds_for_a_file_that_hides_its_size() -> None:
    with pytest.raises(OSError, match="it has more than 3 bytes"):
        read_file("/proc/self/status", 3)  # its size is 0, by its own word


def test_a_file_of_exactly_the_limit_and_an_open_descriptor_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert read_file(tmp_path / "file", 3) == b"abc"
    reading, writing = os.pipe()
    os.write(writing, b"abc")
    os.close(writing)
    try:
        assert read_file(f"/dev/fd/{reading}", 3) == b"abc"
    finally:
        os.close(reading)


@pytest.mark.slow
def test_keys_that_are_given_twice_are_refused(tmp_path: Path) -> None:
    line = '{"id": "a", "prompt": "x", "command": ["true"], "prompt": "y"}\n'
    (tmp_path / "tasks.jsonl").write_text('{"id": "b", "command": ["true"]}\n' + line)
    said = fairlane("--home", tmp_path / "home", "add", "--file", tmp_path / "tasks.jsonl")
    assert said.code == 2
    assert "tasks.jsonl:2: not JSON: key 'prompt' is given twice" in said.err
    assert fairlane("--home", tmp_path / "home", "list", "--json").document["tasks"] == []
    said = fairlane("--home", tmp_path / "home", "import", "jsonl", tmp_path / "tasks.jsonl")
    assert "key 'prompt' is given twice" in said.out + said.err
    (tmp_path / "tree.json").write_text('{"title": "x", "title": "y"}')
    said = fairlane(
        "--home", tmp_path / "home", "group", "add", "g", "--file", tmp_path / "tree.json"
    )
    assert (said.code, "key 'title' is given twice" in said.err) == (2, True)


@pytest.mark.slow
def test_what_is_invisible_is_shown_and_json_keeps_it(tmp_path: Path) -> None:
    hidden = "\u200b\ufeff\u202e\u2066\U000e0041\x1b[31m"
    title = f"ad{hidden}min"
    record = json.dumps({"id": "a", "title": title, "prompt": title, "command": ["true"]})
    home = tmp_path / "home"
    assert fairlane("--home", home, "add", "--file", "-", text=record).code == 0
    for words in (("show", "a"), ("list",), ("why", "a"), ("status",), ("plan",)):
        said = fairlane("--home", home, *words)
        assert said.code == 0
        assert not set(hidden[:6]) & set(said.out + said.err), words
    assert r"ad\u200b\ufeff\u202e\u2066" in fairlane("--home", home, "show", "a").out
    for words in (("show", "a"), ("list",), ("events",)):
        said = fairlane("--home", home, *words, "--json")
        assert not set(hidden[:6]) & set(said.out), words
    shown = fairlane("--home", home, "show", "a", "--json").document
    assert shown["task"]["title"] == title
