"""What docs/mcp.md says of the tools is what they are."""

from __future__ import annotations

import pytest

pytest.importorskip("mcp")

from fairlane.intake.fields import READERS
from fairlane.mcp.tools import tools
from tests.acceptance.commands import ROOT


def row(tool) -> str:
    """A tool as the table of the document has it."""
    needs, hints = tool.input_schema["required"], tool.annotations
    takes = [f"**{name}**" if name in needs else name for name in tool.input_schema["properties"]]
    said = [
        word
        for word, on in (
            ("reads", hints.read_only_hint),
            ("destructive", hints.destructive_hint),
            ("repeatable", hints.idempotent_hint and not hints.read_only_hint),
        )
        if on
    ]
    cells = f"`{tool.name}`", tool.description, ", ".join(takes) or "–", ", ".join(said) or "–"
    return f"| {' | '.join(cells)} |"


def test_the_table_of_tools():
    text = (ROOT / "docs" / "mcp.md").read_text()
    shown = [line for line in text.splitlines() if line.startswith("| `")]
    assert shown == [row(tool) for tool in tools()]


def test_the_tool_add_names_every_field_of_a_task():
    add = next(tool for tool in tools() if tool.name == "add")
    items = add.input_schema["properties"]["tasks"]["items"]
    assert set(items["properties"]) == set(READERS)
