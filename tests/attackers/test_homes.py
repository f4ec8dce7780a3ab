"""Home folders on a machine with other users: private whatever the umask, and no link in `ps`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane.careful_files import make_folder, make_home
from fairlane.model.errors import Refused
from tests.acceptance.commands import ROOT, fairlane
from tests.daemon.world import World
from tests.waiting import LIMIT_SECONDS, until

#: Below these an agent makes what it likes; they are private themselves.
OF_AGENTS = ("work", "artifacts", "marks")
NOBODY = 65_432  # no entry among the users


def modes(home: Path) -> Iterator[tuple[str, int]]:
    """Every file and folder of ours, with its mode."""
    for folder, names, files in os.walk(home):
        for name in (".", *files):
            path = Path(folder, name)
            yield str(path.relative_to(home)), stat.S_IMODE(path.lstat().st_mode)
        below = Path(folder).relative_to(home).parts
        names[:] = [] if below[:1] and below[0] in OF_AGENTS else names


@pytest.mark.slow
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("executor", ["process", "tmux"])
def test_nothing_of_ours_can_be_read_by_others(tmp_path, executor, umask) -> None:
    if executor == "tmux" and shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    before = os.umask(umask)
    try:
        world = World(tmp_path / "home")
        for name in ("fairlane.toml", "policy.toml"):
            (world.home / name).chmod(0o600)  # written by the test itself
        (world.home / "fairlane.toml").write_text(f"[worker]\nexecutor = '{executor}'\n")
        world.add({"id": "a", "command": ["sh", "-c", "echo said; echo wrong >&2"]})
        world.run()
        world.fairlane("backup")
        world.up()
        world.fairlane("down")
        world.fairlane("init")
        (world.home / "marks").chmod(0o700)
    finally:
        os.umask(before)
    assert world.statuses() == {"a": "done"}
    found = dict(modes(world.home))
    assert {name for name, mode in found.items() if mode & 0o077} == set()
    for name in ("fairlane.db", "token", "daemon.log", "daemon.lock", "runs/a/1/stdout.log"):
        assert found[name] == 0o600
    for name in (".", "runs", "runs/a", "runs/a/1", "backups", "work"):
        assert found[name] == 0o700


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0o755, 0o777, 0o770])
def test_an_open_home_is_made_private_and_this_is_said_once(tmp_path: Path, mode: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "policy.toml").write_text("")
    home.chmod(mode)
    first, second = fairlane("--home", home, "status"), fairlane("--home", home, "status")
    assert (first.code, second.code) == (0, 0)
    assert f"could be read by others (mode {mode:03o}); now only you can" in first.err
    assert "others" not in second.err
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_folder_of_other_things_is_not_locked(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "photo").touch()
    assert make_home(tmp_path) == f"others can read {tmp_path} (mode 755): chmod 700 {tmp_path}"
    sticky = make_folder(tmp_path / "shared")
    sticky.chmod(0o1777)
    with pytest.raises(Refused, match=r"mode 1777"):
        make_home(sticky)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    tmp_path.chmod(0o700)
    assert make_home(tmp_path) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a folder of another user")
def test_a_home_of_another_user_is_refused(tmp_path: Path) -> None:
    home = make_folder(tmp_path / "home")
    (home / "policy.toml").touch()
    home.chmod(0o755)
    os.chown(home, NOBODY, NOBODY)
    with pytest.raises(Refused, match="is no home folder, and others can read it"):
        make_home(home)


OPENER = """#!/bin/sh
printf '%s\\n' "$@" > "$FOUND.part"
cp "$1" "$FOUND.page"; stat -c %a "$1" >> "$FOUND.part"
mv "$FOUND.part" "$FOUND"
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "darwin", reason="the opener is another one there")
@pytest.mark.parametrize("way", ["serve", "link"])
def test_no_link_is_on_the_command_line_of_the_opener(tmp_path: Path, way: str) -> None:
    home, found, programs = tmp_path / "home", tmp_path / "found", tmp_path / "bin"
    programs.mkdir()
    (programs / "xdg-open").write_text(OPENER)
    (programs / "xdg-open").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "FOUND": str(found),
        "PYTHONPATH": str(ROOT / "src"),
    }
    words = [sys.executable, "-m", "fairlane", "--home", str(home), "--json"]
    opens = ["--open"] if way == "serve" else []
    with subprocess.Popen(
        [*words, "serve", "--port", "0", *opens], env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            until((home / "server.json").exists)
            if way == "link":
                subprocess.run([*words, "link", "--open"], env=environment, check=True)
            until(found.exists)
            argument, mode = found.read_text().splitlines()
            assert (argument, mode) == (str(home / "opening.html"), "600")
            page = (tmp_path / "found.page").read_text()
            link = page.partition('href="')[2].partition('"')[0]
            assert "/open?key=" in link
            assert f'content="0; url={link}"' in page
            done = subprocess.run(
                ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", link],
                capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True,
            )  # fmt: skip
            assert done.stdout == "303"
            until(lambda: not (home / "opening.html").exists())
        finally:
            server.send_signal(signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_user_without_an_entry_and_without_a_home_gets_a_clear_word(tmp_path: Path) -> None:
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable
    libraries = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    words = ["env", "-i", f"PATH={os.environ['PATH']}", f"PYTHONPATH={libraries}", python]

    def call(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words,
             "-m", "fairlane", *more],
            capture_output=True, text=True, cwd="/", timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip

    if "No module named fairlane" in (asked := call("--version")).stderr or asked.returncode == 126:
        pytest.skip("another user cannot read this checkout or its interpreter")
    refused = call("status")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"error: user {NOBODY} has no home directory" in refused.stderr
    assert "hint: Set HOME or FAIRLANE_HOME, or give a folder with --home." in refused.stderr
    tilde = call("--home", "/nowhere", "--db", "sqlite:~/x.db", "status")
    assert (tilde.returncode, "Traceback" in tilde.stderr) == (2, False)


def test_without_a_home_directory_the_error_is_a_document(monkeypatch, capsys) -> None:
    from fairlane.cli.main import run

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("HOME", "FAIRLANE_HOME", "XDG_STATE_HOME", "FAIRLANE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    assert run(["status", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "no_home"
