"""What keeps a daemon from coming up: the daemon refuses it, and `doctor` shows the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairlane.clock import SYSTEM
from fairlane.daemon.main import Daemon
from fairlane.engine.context import Context
from fairlane.model.errors import FairlaneError
from fairlane.runtime.lock import holder
from fairlane.service.home import doctor
from fairlane.settings import Settings
from fairlane.store.memory.store import MemoryStore


def broken_policy(home: Path) -> None:
    (home / "policy.toml").write_text("caps.all = -1\n")


def unknown_executor(home: Path) -> None:
    (home / "fairlane.toml").write_text('[worker]\nexecutor = "proces"\n')


def unknown_parser(home: Path) -> None:
    (home / "fairlane.toml").write_text('[agents.x]\nargv = ["echo"]\nparser = "foo"\n')


def file_for_runs(home: Path) -> None:
    (home / "runs").write_text("")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (broken_policy, "caps.all"),
        (unknown_executor, "no executor 'proces'"),
        (unknown_parser, "there is no parser 'foo'"),
        (file_for_runs, "runs is no folder"),
    ],
)
def test_a_start_that_would_fail_is_refused_and_shown(
    tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    tmp_path.chmod(0o700)
    spoil(tmp_path)
    settings = Settings.load(tmp_path / "fairlane.toml")
    context = Context(tmp_path, MemoryStore(), settings, SYSTEM, "ann")
    with pytest.raises(FairlaneError, match=message):
        Daemon(context).run()
    assert holder(tmp_path) is None
    report = doctor.examine(tmp_path, None, f"sqlite:{tmp_path / 'fairlane.db'}", SYSTEM)
    wrong = [finding for finding in report["findings"] if finding["level"] == "wrong"]
    assert any(message in finding["message"] for finding in wrong)
    assert len({finding["message"] for finding in wrong}) == len(wrong)


def test_who_has_the_lock_is_shown(tmp_path: Path) -> None:
    def levels(daemon: dict[str, object] | None) -> list[str]:
        url = f"sqlite:{tmp_path / 'fairlane.db'}"
        report = doctor.examine(tmp_path, None, url, SYSTEM, daemon=daemon)
        return [row["level"] for row in report["findings"] if row["what"] == "daemon"]

    assert levels(None) == []
    assert levels({"pid": 7, "what": "up", "begun": True}) == ["fine"]
    assert levels({"pid": 7, "what": "up", "begun": False}) == ["note"]
    assert levels({"pid": 0, "what": "up", "begun": False}) == ["wrong"]
