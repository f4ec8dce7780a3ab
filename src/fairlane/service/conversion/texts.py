"""Texts: what was converted as TOML files that a person can read on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fairlane.policy import schema
from fairlane.service.conversion.base import Converted

#: Where the remarks stand.
_REMARK_AT = 34


def policy_text(found: Converted, name: str) -> str:
    """`policy.toml`; nothing where the files hold no rules."""
    if found.preset is None:
        return ""
    lines = [
        f"# Converted from {name}.",
        "# `fairlane policy show` prints every key with its value and where it came from.",
        f'preset = "{found.preset}"',
        *_lines(found.policy, found.called),
    ]
    for budget in found.budgets:
        lines += ["", "[[budget]]", *(f"{key} = {json.dumps(budget[key])}" for key in budget)]
    return "\n".join(lines) + "\n"


def settings_text(found: Converted, name: str) -> str:
    """What `fairlane.toml` gets; nothing where nothing follows."""
    if not found.settings:
        return ""
    lines = [f"# Converted from {name}.", *_lines(found.settings, found.called)]
    return "\n".join(lines) + "\n"


def _lines(values: Mapping[str, Any], called: Mapping[str, str]) -> list[str]:
    found = []
    for key, value in values.items():
        line = f"{schema.show_key(key)} = {json.dumps(value)}"
        found.append(f"{line:{_REMARK_AT}} # {called[key]}" if key in called else line)
    return found


def merged(before: str, changes: Mapping[str, Any]) -> str:
    """A settings file with some keys changed; everything else in it stays, comments too."""
    import tomlkit

    document = tomlkit.parse(before)
    for key, value in changes.items():
        table: Any = document
        *tables, leaf = key.split(".")
        for name in tables:
            if name not in table:
                table[name] = tomlkit.table()
            table = table[name]
        table[leaf] = value
    return tomlkit.dumps(document)
