"""`fairlane service install`: a unit that starts this very home, and ends only the daemon."""

from __future__ import annotations

import json
import plistlib
import shlex
import sys
from pathlib import Path

from tests.http.served import ENV, fairlane


def test_a_unit_of_systemd(tmp_path, monkeypatch):
    monkeypatch.setitem(ENV, "XDG_CONFIG_HOME", str(tmp_path / "config"))
    home = tmp_path / "my 100% home"
    said = fairlane(home, "service", "install", "--kind", "systemd")
    assert said.returncode == 0, said
    file = tmp_path / "config/systemd/user/fairlane.service"
    assert f"wrote {file}" in said.stdout
    assert "systemctl --user enable --now fairlane.service" in said.stdout
    lines = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
    words = shlex.split(lines["ExecStart"].replace("%%", "%"))
    assert words == [sys.executable, "-m", "fairlane", "--home", str(home), "up"]
    assert lines["KillMode"] == "process"
    assert lines["Environment"].startswith('"PATH=/')
    assert fairlane(home, "service", "install", "--kind", "systemd").returncode == 0
    file.write_text("mine")
    refused = fairlane(home, "service", "install", "--kind", "systemd")
    assert refused.returncode == 1
    assert "is there and says something else" in refused.stderr
    assert file.read_text() == "mine"
    assert fairlane(home, "service", "install", "--kind", "systemd", "--force").returncode == 0


def test_an_agent_of_launchd(tmp_path, monkeypatch):
    monkeypatch.setitem(ENV, "HOME", str(tmp_path))
    said = fairlane(tmp_path, "--json", "service", "install", "--kind", "launchd")
    told = json.loads(said.stdout)
    agent = plistlib.loads(Path(told["file"]).read_bytes())
    assert agent["ProgramArguments"][-2:] == [str(tmp_path), "up"]
    assert agent["AbandonProcessGroup"] is True
    assert told["then"] == [f"launchctl load -w {told['file']}"]
