"""Labels become kinds by the table of a source, for a sync and for an import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlane.intake.sources.base import Where
from fairlane.model.errors import Invalid
from fairlane.service.sync import syncing
from fairlane.service.sync.importing import ImportOptions, bring_in
from fairlane.settings import Settings
from tests.conformance.samples.github import issue
from tests.unit.contexts import TestContext

KINDS = {"Bug": "fix", "docs": "write"}
LABELS = {1: ["bug"], 2: ["other", "Docs", "bug"], 3: ["kind:review", "bug"], 4: ["other"]}


@pytest.fixture
def home(tmp_path: Path) -> TestContext:
    rows = [
        issue(number, "t", labels=[{"name": label} for label in labels])
        for number, labels in LABELS.items()
    ]
    (tmp_path / "issues.json").write_text(json.dumps(rows))
    rule = {"type": "github", "path": "issues.json", "kinds": KINDS}
    return TestContext(tmp_path, {"source": [{"type": "github", "path": "other.json"}, rule]})


def kinds(home: TestContext) -> dict[str, Any]:
    with home.context.store.read() as reading:
        tasks = reading.tasks([f"shop-{number}" for number in LABELS])
        return {name: task.kind for name, task in sorted(tasks.items())}


WANTED = {"shop-1": "fix", "shop-2": "write", "shop-3": "review"}


def test_a_sync_and_an_import_use_the_table(home, tmp_path):
    syncing.sync(home.context, str(tmp_path / "issues.json"))
    found = kinds(home)
    assert {name: found[name] for name in WANTED} == WANTED
    assert found["shop-4"] not in WANTED.values()
    answer = bring_in(home.context, "github", Where(tmp_path / "issues.json"), ImportOptions())
    assert len(answer["unchanged"]) == 4


def test_an_import_of_another_file_uses_the_table_of_its_type(home, tmp_path):
    text = (tmp_path / "issues.json").read_text()
    bring_in(home.context, "github", Where(text=text), ImportOptions())
    found = kinds(home)
    assert {name: found[name] for name in WANTED} == WANTED


def test_a_kind_is_a_name():
    rule = {"type": "github", "path": "x", "kinds": {"bug": "a b"}}
    with pytest.raises(Invalid, match=r"source\[0\]\.kinds: bug: not a kind name"):
        Settings.parse({"source": [rule]})
