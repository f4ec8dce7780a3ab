"""Time is a port: few files read the clock or wait by themselves, each for a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.repository import files as repository_files
from tests.tidy.repository import nodes, read

#: Files that read time or wait without `fairlane.clock`, and why.
ALLOWED = {
    "src/fairlane/clock.py": "the port itself",
    "src/fairlane/agents/demo.py": "a program of its own: the simulated agent",
    "src/fairlane/executors/process.py": "waits for a runner that has written its last record",
    "src/fairlane/executors/runner/__init__.py": "stands alone, without our imports",
    "src/fairlane/executors/runner/calls.py": "stands alone, without our imports",
    "src/fairlane/executors/runner/cgroup.py": "stands alone, without our imports",
    "src/fairlane/executors/runner/files.py": "stands alone, without our imports",
    "src/fairlane/executors/runner/log.py": "stands alone, without our imports",
    "src/fairlane/executors/runner/tree.py": "stands alone, without our imports",
    "src/fairlane/client/wire.py": "asks whether a kept connection is closed; waits for nothing",
    "src/fairlane/http/guard.py": "waits in the event loop",
    "src/fairlane/http/metrics.py": "waits in the event loop",
    "src/fairlane/cli/work/mcp.py": "waits in the event loop",
    "src/fairlane/daemon/source_job.py": "a flag that another thread looks at; nobody waits for it",
    "src/fairlane/testing/stores/transactions.py": "cases with two threads",
}
MODULES = ("time", "sched", "select", "selectors")
#: (module, name): a sleep, or what can be one in disguise.
NAMES = {("threading", "Event"), ("asyncio", "sleep"), ("anyio", "sleep")}


def uses(source: str) -> Iterator[str]:
    """How a file reads time or waits."""
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            if node.module in MODULES:
                yield node.module
            names = {(node.module or "", alias.name) for alias in node.names}
            yield from (f"{module}.{name}" for module, name in sorted(names & NAMES))
        elif isinstance(node, ast.Attribute):
            name = (ast.unparse(node.value), node.attr)
            yield from (".".join(name),) if name in NAMES else ()


def test_only_named_files_read_time_or_wait() -> None:
    sources = [
        path for path in repository_files() if path.startswith("src/") and path.endswith(".py")
    ]
    found = {path: sorted(set(uses(read(path)))) for path in sources}
    strays = {path: how for path, how in found.items() if how and path not in ALLOWED}
    assert not strays, "use fairlane.clock, or name the file and the reason here"
    assert [path for path in ALLOWED if not found.get(path)] == [], "no longer needed"


@pytest.mark.parametrize(
    ("line", "how"),
    [
        ("import time", "time"),
        ("from time import monotonic", "time"),
        ("import selectors as s", "selectors"),
        ("from threading import Event as Signal", "threading.Event"),
        ("import threading\nthreading.Event().wait(1)", "threading.Event"),
        ("async def wait():\n    await asyncio.sleep(1)", "asyncio.sleep"),
        ("from fairlane.clock import SYSTEM", ""),
        ("from datetime import datetime, timezone", ""),
    ],
)
def test_what_counts(line: str, how: str) -> None:
    assert list(uses(line)) == ([how] if how else [])
