"""Change a policy file, checked before it is replaced; tell the origin of each value."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.careful_files import stage, unwritable
from fairlane.model.errors import Invalid
from fairlane.model.record import NamedTuple
from fairlane.policy import load, schema
from fairlane.policy.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tomlkit import TOMLDocument

    from fairlane.policy.load import Layer


#: Permissions of a file that was not there before.
_NEW_MODE = 0o644


class Difference(NamedTuple):
    """One key that two policies set differently."""

    key: str
    a: object
    b: object


def diff(a: Policy, b: Policy) -> list[Difference]:
    """The keys in which two policies differ, in the order of the language."""
    ours, theirs = a.shown(), b.shown()
    keys = [*ours, *(key for key in theirs if key not in ours)]
    return [
        Difference(schema.show_key(key), one, other)
        for key in keys
        if (one := ours.get(key, schema.NONE)) != (other := theirs.get(key, schema.NONE))
    ]


def set_key(path: str | Path, assignment: str) -> Policy:
    """Change one key (`caps.all=8`) and keep every comment; a bad value changes nothing."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    target = Path(path)
    key, value = parse_assignment(assignment)
    text = load.read_text(target)
    if text is None:
        text = _page(load.DEFAULT_PRESET)
    load.parse_toml(text, str(target))  # a mistake is named as everywhere else
    try:
        document = tomlkit.parse(text)
        _put(document, key, value)
        changed = tomlkit.dumps(document)
    except TOMLKitError as error:
        hint = "Edit the file by hand; nothing was changed."
        raise Invalid(f"{target}: {schema.show_key(key)} cannot be set: {error}", hint) from error
    return _replace(target, changed)


def use_preset(path: str | Path, name: str) -> Path | None:
    """Write a file that uses a preset; the file before it is kept, its new path returned."""
    target = Path(path)
    load.preset_layer(name)
    backup = free_backup(target) if target.exists() else None
    if backup:
        shutil.copy2(target, backup)
    _replace(target, _page(name))
    return backup


def parse_assignment(text: str) -> tuple[str, object]:
    """`KEY=VALUE`: the value as TOML, and as plain text where it is not (`overdue.after=24h`)."""
    # A cap's value has no "=" but its name may: caps.label:os=linux=2.
    cut = text.rpartition if text.lstrip().startswith("caps.") else text.partition
    written, equals, raw = cut("=")
    key, raw = schema.split_key(written), raw.strip()
    if not equals or not key or not raw:
        raise Invalid(f"not a setting: {text!r}", "Write it as KEY=VALUE, such as caps.all=8.")
    try:
        value: object = tomllib.loads(f"value = {raw}")["value"]
    except (ValueError, KeyError):
        value = raw
    if isinstance(value, str) and key in schema.ROWS and schema.ROWS[key].show is list:
        value = value.replace(",", " ").split()
    return key, value


def _put(document: TOMLDocument, key: str, value: object) -> None:
    """Set a key in place; add a new one to its table, or as a dotted line."""
    *tables, leaf = schema.key_parts(key)
    table: MutableMapping[str, object] = document
    for name in tables:
        inner = table.get(name)
        if inner is None:
            _add(document, table, [*tables[tables.index(name) :], leaf], value)
            return
        if not isinstance(inner, MutableMapping):
            raise Invalid(f"{name} is not a table", "Edit the file by hand; nothing was changed.")
        table = inner
    table[leaf] = value


def _add(
    document: TOMLDocument, table: MutableMapping[str, object], names: list[str], value: object
) -> None:
    """A key whose table is not there yet: a new `[table]` at the end of the file."""
    import tomlkit

    *tables, leaf = names
    inner: MutableMapping[str, object] = tomlkit.table()
    inner[leaf] = value
    for name in reversed(tables[1:]):
        outer = tomlkit.table(is_super_table=True)
        outer[name] = inner
        inner = outer
    if table is document and document.as_string().strip():
        document.add(tomlkit.nl())
    table[tables[0]] = inner


def _page(name: str) -> str:
    """A new policy file for a preset."""
    what = load.presets()[name]
    return (
        f"# {what}.\n"
        "# `fairlane policy show` prints every key with its value and where it came from.\n"
        '# Changes go below, such as caps.all = 8; the word "none" removes a limit.\n'
        f'preset = "{name}"\n'
    )


def free_backup(target: Path) -> Path:
    """`policy.toml.bak`, or the first numbered one that is free or equal: no backup is lost."""
    number = 0
    while True:
        backup = target.with_name(f"{target.name}.bak{number or ''}")
        if not backup.exists() or backup.read_bytes() == target.read_bytes():
            return backup
        number += 1


def _replace(target: Path, text: str) -> Policy:
    """Check the new text, then put it in the place of the old one in one step."""
    mapping = load.parse_toml(text, str(target))
    layers = load.mapping_layers(mapping, str(target), load.key_lines(text))
    policy = Policy.of_layers(layers)
    target = target.resolve()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        staged = stage(target, text, _NEW_MODE)
        try:
            staged.replace(target)
        finally:
            staged.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(target, error) from error
    return policy


class Origin(NamedTuple):
    """One key as it is in force."""

    key: str  # as written in TOML
    value: object  # canonical, "none" where it is absent
    origin: str  # `preset balanced`, `policy.toml:12`, `override`


def sources(path: str | Path, overrides: Mapping[str, object] | None = None) -> list[Layer]:
    """The layers of a policy file, the preset first, overrides on top."""
    layers = load.file_layers(Path(path))
    return [*layers, load.override_layer(overrides)] if overrides else layers


def explain(policy_sources: Sequence[Layer]) -> list[Origin]:
    """Every key of the policy in force, in the order of the language, with who set it."""
    policy = Policy.of_layers(policy_sources)
    shown = policy.shown()
    removed = {key for layer in policy_sources for key in layer.values} - shown.keys()
    shown.update(dict.fromkeys(sorted(removed), schema.NONE))
    return [
        Origin(schema.show_key(key), value, _said_by(key, policy_sources))
        for key, value in shown.items()
    ]


def _said_by(key: str, layers: Sequence[Layer]) -> str:
    """The top layer that sets the key, else the preset."""
    for layer in reversed(layers):
        if key in layer.values:
            return f"{Path(layer.origin).name}{layer.place(key)[len(layer.origin) :]}"
    return layers[0].origin
