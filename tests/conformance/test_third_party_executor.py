"""An executor of a third party, installed by its entry point, is an executor like ours."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.acceptance.commands import ROOT, Said, fairlane

EXECUTOR = """
from dataclasses import replace
from fairlane.executors.process import ProcessExecutor

class Polite(ProcessExecutor):
    def launch(self, orders):
        return super().launch(replace(orders, argv=("nice", "-n", "7", *orders.argv)))
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder on the path of Python, as an installer would leave it, and a home that uses it."""
    folder = tmp_path / "site"
    about = folder / "polite-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "polite.py").write_text(textwrap.dedent(EXECUTOR), encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: polite\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[fairlane.executors]\npolite = polite:Polite\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "fairlane.toml").write_text('[worker]\nexecutor = "polite"\n')
    return folder


def call(installed: Path, *words: object) -> Said:
    path = f"{ROOT / 'src'}:{installed}"
    return fairlane("--home", installed.parent / "home", *words, PYTHONPATH=path)


def test_it_runs_attempts(installed: Path) -> None:
    assert call(installed, "add", "--id", "a", "--", "nice").code == 0
    done = call(installed, "run")
    assert done.code == 0, done
    assert call(installed, "logs", "a").out == "7\n"


def test_one_that_is_not_installed_is_named(installed: Path) -> None:
    settings = installed.parent / "home" / "fairlane.toml"
    settings.write_text('[worker]\nexecutor = "polit"\n')
    call(installed, "add", "--id", "a", "--", "true")
    said = call(installed, "--json", "run")
    assert (said.code, said.document["error"]["code"]) == (2, "invalid_settings")
    assert said.document["error"]["hint"] == "Did you mean 'polite'?"
