"""The command: what it refuses, and that nothing of it stays when it is killed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fairlane.testing.torture import __main__ as command

WORDS = (sys.executable, "-m", "fairlane.testing.torture")


@pytest.mark.parametrize(
    "words",
    [["--events", "0"], ["--events", "-5"], ["--minutes", "nan"], ["--hours", "inf"],
     ["--minutes", "0"], ["--jobs", "0"], ["--seed", "-3"]],
)  # fmt: skip
def test_what_would_check_nothing_or_never_end_is_refused(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["torture", *words])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert f"argument {words[0]}: " in capsys.readouterr().err


@pytest.mark.slow
def test_its_processes_end_with_it():
    """They have its standard output, which ends with the last of them."""
    with subprocess.Popen([*WORDS, "--minutes", "2"], stdout=subprocess.PIPE) as torturing:
        assert torturing.stdout is not None
        assert torturing.stdout.readline()
        torturing.kill()
        torturing.communicate(timeout=30)
