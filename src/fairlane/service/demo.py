"""The demo: a finished little world without any account; drawn from a seed, so it repeats."""

from __future__ import annotations

import random
from typing import Any

from fairlane.service import projects, tasks
from fairlane.service.desk import Desk

PROJECTS = (("web", 3), ("api", 2), ("docs", 1))
POLICY = """\
# The demo: everything that takes minutes in earnest takes seconds here.
preset = "balanced"
caps.all = 8
share.default_estimate = 20000
share.idle_credit = 20000
retry.base = "2s"
retry.max_attempts = 2
cooldown.base = "4s"
"""
SETTINGS = """\
[worker]
slots = 8
"""
_WEB = (
    "Fix the login form on small screens", "Dark mode for the settings page",
    "Speed up the first paint", "Replace the date picker", "Keyboard shortcuts for the board",
    "Lazy-load the charts", "Translate the onboarding", "Remember the sidebar's width",
    "Undo for deleted cards", "Fix the flicker on scroll", "Accessible colour contrast",
    "Upgrade the bundler", "Offline banner", "Drag and drop between columns",
    "Tests for the signup flow", "Print stylesheet", "Empty states with a hint",
    "Cut the bundle in half",
)  # fmt: skip
_API = (
    "Rate limit the export endpoint", "Paginate the audit log", "Index the events table",
    "Retry webhooks with backoff", "Validate uploads early", "Rotate signing keys",
    "Move sessions out of memory", "Trace slow queries", "Deprecate version 1",
    "Fix the race in checkout", "Soft-delete for users", "Batch the nightly import",
)  # fmt: skip
_DOCS = (
    "Quick start in five minutes", "Explain the permissions", "Screenshots of the new board",
    "API reference from the schema", "Glossary", "How to migrate from version 1",
    "Fix the broken links", "A page on limits", "Recipes for the command line",
    "Release notes",
)  # fmt: skip


def prepare(desk: Desk, seed: int = 7, seconds: float = 5.0) -> None:
    """Three projects and forty tasks, some of which fail, one is throttled, one is parked."""
    for name, weight in PROJECTS:
        projects.add_project(desk, name, {"weight": weight})
    tasks.add(desk, records(seed, seconds))


def records(seed: int = 7, seconds: float = 5.0) -> list[dict[str, Any]]:
    """The forty tasks."""
    draw = random.Random(seed)
    found: list[dict[str, Any]] = []
    for project, titles in (("web", _WEB), ("api", _API), ("docs", _DOCS)):
        for number, title in enumerate(titles, 1):
            env = {
                "FAIRLANE_DEMO_SEED": str(seed),
                "FAIRLANE_DEMO_SECONDS": f"{seconds * draw.uniform(0.5, 1.5):.1f}",
                "FAIRLANE_DEMO_FAIL": "0",
                "FAIRLANE_DEMO_THROTTLE": "0",
            }
            kind = "review" if draw.random() < 0.2 else "code"
            task = {"id": f"{project}-{number}", "project": project, "title": title}
            found.append(task | {"prompt": title, "kind": kind, "agent": "demo", "env": env})
    by_id = {task["id"]: task for task in found}
    by_id["api-10"]["env"]["FAIRLANE_DEMO_FAIL"] = "1"  # it is parked in the end
    by_id["web-10"]["env"]["FAIRLANE_DEMO_FAIL"] = "first"
    by_id["docs-7"]["env"]["FAIRLANE_DEMO_FAIL"] = "first"
    by_id["web-6"]["env"]["FAIRLANE_DEMO_THROTTLE"] = "first"
    by_id["web-15"]["needs"] = ["web-1"]
    by_id["docs-4"]["needs"] = ["api-2"]
    by_id["docs-10"]["needs"] = ["docs-1", "docs-6"]
    for name in ("api-3", "api-8"):
        by_id[name]["locks"] = ["database"]
    by_id["web-1"]["priority"] = 10
    return found
