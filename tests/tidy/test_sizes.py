"""Files, functions and folders stay small; see limits.toml."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Any

from tests.tidy.repository import files, nodes, read

LIMITS: dict[str, Any] = tomllib.loads(read("tests/tidy/limits.toml"))
RAISED: dict[str, Any] = {entry["path"]: entry for entry in LIMITS.get("raised", [])}


def limit_of(path: str) -> int | None:
    if path in RAISED:
        return int(RAISED[path]["limit"])
    fits = (entry["limit"] for entry in LIMITS["file"] if fnmatch(path, entry["pattern"]))
    return next(fits, None)


def test_files_stay_within_their_limits():
    too_long = []
    for path in files():
        limit = limit_of(path)
        lines = len(read(path).splitlines()) if limit else 0
        if limit and lines > limit:
            too_long.append(f"{path}: {lines} lines, limit {limit}")
    assert not too_long, "\n".join(too_long)


def test_the_first_fitting_limit_counts():
    assert limit_of("src/fairlane/planner/gates/caps.py") == 60
    assert limit_of("src/fairlane/planner/reference.py") == 120
    assert limit_of("src/fairlane/store/sqlite/queries.sql") == 400
    assert limit_of("src/fairlane/model/task.py") == 400
    assert limit_of("tests/unit/model/test_task.py") == 500
    assert limit_of("README.md") is None


def test_functions_stay_within_their_limit():
    too_long = []
    for path in files():
        if path.endswith(".py") and path.startswith(("src/", "bench/")):
            too_long += long_functions(path, read(path))
    assert not too_long, "\n".join(too_long)


def test_a_long_function_is_found():
    body = "    x = 1\n" * LIMITS["function"]["limit"]
    assert long_functions("a.py", f"def f():\n{body}") == ["a.py:1 f: 51 lines, limit 50"]


def long_functions(path: str, source: str) -> list[str]:
    limit = LIMITS["function"]["limit"]
    found = []
    for node in nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > limit:
                found.append(f"{path}:{node.lineno} {node.name}: {lines} lines, limit {limit}")
    return found


def test_folders_stay_within_their_limit():
    limit = LIMITS["folder"]["limit"]
    python = [PurePosixPath(path) for path in files() if path.endswith(".py")]
    counts = Counter(str(path.parent) for path in python if path.name != "__init__.py")
    raised = {entry["path"]: entry["limit"] for entry in LIMITS.get("crowded", [])}
    crowded = [
        f"{folder}: {count} files, limit {raised.get(folder, limit)}"
        for folder, count in counts.items()
        if count > raised.get(folder, limit)
    ]
    assert not crowded, "\n".join(crowded)


def test_a_crowded_folder_has_a_reason():
    assert all(entry["reason"].strip() for entry in LIMITS.get("crowded", []))


def test_a_raised_limit_has_a_reason_and_is_needed():
    for path, entry in RAISED.items():
        assert entry["reason"].strip(), path
        usual = next(e["limit"] for e in LIMITS["file"] if fnmatch(path, e["pattern"]))
        assert usual < len(read(path).splitlines()) <= entry["limit"], path
