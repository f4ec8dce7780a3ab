"""Every setting and every key of the policy is read somewhere: one that is only accepted lies."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import fields

from fairlane import settings
from fairlane.model.sandbox import SandboxSettings
from fairlane.policy.policy import SECTIONS
from tests.tidy.repository import files, nodes, read

#: Files that declare settings and policy keys, or turn text into them.
DECLARING = ("src/fairlane/settings.py", "src/fairlane/model/sandbox.py", "src/fairlane/policy/")

#: A class of values by the attribute under which others find it.
Sections = Mapping[str, type]
SETTINGS: Sections = {
    "store": settings.StoreSettings,
    "worker": settings.WorkerSettings,
    "agents": settings.AgentSettings,
    "pools": settings.PoolSettings,
    "workspaces": settings.WorkspaceSettings,
    "checks": settings.CheckSettings,
    "notify": settings.NotifyRule,
    "source": settings.SourceRule,
    "server": settings.ServerSettings,
    "log": settings.LogSettings,
    "sandbox": SandboxSettings,
}
POLICY: Sections = SECTIONS
#: Keys that a method of the declaring file reads for everybody: the method.
BY_METHOD = {
    "agents.pool": "agent_pool",
    "agents.sandbox": "sandbox_for",
    "sandbox.project": "sandbox_for",
    "backpressure.soft": "backpressure_limits",
    "backpressure.hard": "backpressure_limits",
}


def unread(sources: Iterable[str], declared: Sections) -> list[str]:
    """The keys whose attribute no source reads that also names their section or its class."""
    read_by_source = [_names(source) for source in sources]
    return [
        f"{section}.{field.name}"
        for section, kind in declared.items()
        for field in fields(kind)
        if not any(
            BY_METHOD.get(f"{section}.{field.name}") in attributes
            or (field.name in attributes and (section in attributes or kind.__name__ in names))
            for attributes, names in read_by_source
        )
    ]


def _names(source: str) -> tuple[set[str], set[str]]:
    """The attributes that a source reads, and the names that it uses or imports."""
    attributes, names = set(), set()
    for node in nodes(source):
        if isinstance(node, ast.Attribute):
            attributes.add(node.attr)
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.name)
    return attributes, names


def _sources() -> list[str]:
    return [
        read(path)
        for path in files()
        if path.startswith("src/") and path.endswith(".py") and not path.startswith(DECLARING)
    ]


def test_every_setting_is_read():
    declared = {field.name for field in fields(settings.Settings)} - {"agent"}
    assert declared == set(SETTINGS)
    assert unread(_sources(), SETTINGS) == []


def test_every_policy_key_is_read():
    assert {"capacity", "lease", "usage", "recovery"} <= set(POLICY)
    assert unread(_sources(), POLICY) == []


def test_a_key_that_nobody_reads_is_found():
    declared = {"log": settings.LogSettings}
    reads_two = "size = settings.log.max_bytes\nprint(settings.log.mask)"
    elsewhere = "print(record.level)"
    assert unread([reads_two, elsewhere], declared) == ["log.level"]
    assert unread([reads_two, "say(settings.log.level)"], declared) == []
    assert unread([reads_two, "def f(log: LogSettings): print(log.level)"], declared) == []
