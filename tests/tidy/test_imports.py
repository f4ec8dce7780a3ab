"""The import contracts bite, and the library needs nothing but the standard library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.repository import ROOT

LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")

LOADED = """
import sys
before = set(sys.modules)
from fairlane import plan
names = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(names - set(sys.stdlib_module_names) - {"fairlane"}))
"""


def test_the_library_imports_only_the_standard_library():
    command = [sys.executable, "-c", LOADED]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert loaded.stdout.split() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "line", "told"),
    [
        ("planner", "import sqlite3", "fairlane.planner -> sqlite3"),
        ("lifecycle", "import time", "fairlane.lifecycle -> time"),
        ("model", "import fairlane.policy", "fairlane.model -> fairlane.policy"),
    ],
)
def test_a_planted_import_is_caught(tmp_path, folder, line, told):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    planted = tmp_path / "src" / "fairlane" / folder / "__init__.py"
    planted.write_text(f"{planted.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    told_by = subprocess.run(
        [LINT_IMPORTS, "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told_by.returncode == 1
    assert told in told_by.stdout
