"""The demo: a finished little world without any account; drawn from a seed, so it repeats."""

from __future__ import annotations

import random

from fairlane.engine.context import Context
from fairlane.service import projects, tasks

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
#: Tasks that go wrong: `api-10` always, so that it is parked in the end; the others once.
_TROUBLE = {
    "api-10": {"FAIRLANE_DEMO_FAIL": "1"},
    "web-10": {"FAIRLANE_DEMO_FAIL": "first"},
    "docs-7": {"FAIRLANE_DEMO_FAIL": "first"},
    "web-6": {"FAIRLANE_DEMO_THROTTLE": "first"},
}
#: Further fields of some tasks.
_MORE: dict[str, dict[str, object]] = {
    "web-1": {"priority": 10},
    "web-15": {"needs": ["web-1"]},
    "docs-4": {"needs": ["api-2"]},
    "docs-10": {"needs": ["docs-1", "docs-6"]},
    "api-3": {"locks": ["database"]},
    "api-8": {"locks": ["database"]},
}


def prepare(context: Context, seed: int = 7, seconds: float = 5.0) -> None:
    """Three projects and forty tasks, some of which fail, one is throttled, one is parked."""
    for name, weight in PROJECTS:
        projects.add_project(context, name, {"weight": weight})
    tasks.add(context, records(seed, seconds))


def records(seed: int = 7, seconds: float = 5.0) -> list[dict[str, object]]:
    """The forty tasks."""
    draw = random.Random(seed)
    rows: list[dict[str, object]] = []
    for project, titles in (("web", _WEB), ("api", _API), ("docs", _DOCS)):
        for number, title in enumerate(titles, 1):
            name = f"{project}-{number}"
            env = {
                "FAIRLANE_DEMO_SEED": str(seed),
                "FAIRLANE_DEMO_SECONDS": f"{seconds * draw.uniform(0.5, 1.5):.1f}",
                "FAIRLANE_DEMO_FAIL": "0",
                "FAIRLANE_DEMO_THROTTLE": "0",
                **_TROUBLE.get(name, {}),
            }
            kind = "review" if draw.random() < 0.2 else "code"
            task = {"id": name, "project": project, "title": title, "prompt": title}
            rows.append(task | {"kind": kind, "agent": "demo", "env": env} | _MORE.get(name, {}))
    return rows
