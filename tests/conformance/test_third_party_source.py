"""A source of a third party, installed by its entry point, is a source like ours."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.acceptance.commands import ROOT, Said, fairlane

SOURCE = """
from fairlane.intake.sources.base import Found, Item, LeftOut

def read(where):
    lines = where.path.read_text().splitlines() if where.text is None else where.text.splitlines()
    named = [line.partition(" ") for line in lines]
    items = tuple(Item(name, {"title": title}) for name, _, title in named if title)
    left = tuple(LeftOut(name, "it says nothing", bad=True) for name, _, text in named if not text)
    return Found(items, left_out=left)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder on the path of Python, as an installer would leave it."""
    folder = tmp_path / "site"
    about = folder / "post_its-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "post_its.py").write_text(textwrap.dedent(SOURCE), encoding="utf-8")
    (folder / "not_one.py").write_text("wall = 'no source'\n", encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: post-its\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[fairlane.sources]\npost-its = post_its\nwall = not_one:wall\n"
    )
    return folder


def call(installed: Path, *words: object) -> Said:
    path = f"{ROOT / 'src'}:{installed}"
    home = installed.parent / "home"
    return fairlane("--home", home, "--json", *words, PYTHONPATH=path)


def test_it_is_found_and_imports(installed, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("n1 Buy milk\nn2 Water the plants\nn3\n")
    first = call(installed, "import", "post-its", notes)
    assert first.code == 0, first
    assert [row["id"] for row in first.document["created"]] == ["n1", "n2"]
    assert [row["id"] for row in first.document["skipped"]] == ["n3"]
    again = call(installed, "import", "post-its", notes).document
    assert (again["created"], again["unchanged"]) == ([], ["n1", "n2"])


def test_it_is_listed_beside_ours(installed):
    said = call(installed, "import", "post-it", "x")
    assert (said.code, said.document["error"]["hint"]) == (2, "Did you mean 'post-its'?")
    listed = call(installed, "import", "zzzzzzzz", "x").document["error"]["hint"]
    for name in ("post-its", "taskmaster", "spec-kit", "backlog", "github", "jsonl"):
        assert name in listed


def test_what_is_no_source_is_named(installed):
    said = call(installed, "import", "wall", "x")
    assert (said.code, said.document["error"]["message"]) == (2, "'wall' is no source")
