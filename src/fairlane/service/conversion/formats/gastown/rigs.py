"""The rigs of a town: each is a project, with the clone that the town has of it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from fairlane.intake import files
from fairlane.model.errors import Invalid, listed
from fairlane.model.values import text
from fairlane.service.conversion import base
from fairlane.service.conversion.base import NAMED_MAX, UNCHANGED, WHAT, Converted, table
from fairlane.service.conversion.formats.gastown.agents import agent_name

#: The town's own beads: they coordinate, and are no work.
TOWN_PREFIX = "hq-"
#: Where a rig's folder has a clone; the polecats' own are worktrees of others.
CLONES = ("mayor/rig", "refinery/rig")
#: A town with more is none.
RIGS_MAX = 100_000
#: What a rig's own folder says in addition: its agent, and its prefix where the list has none.
SETTINGS, IDENTITY = "settings/config.json", "config.json"
_KNOWN = {"git_url", "local_repo", "added_at", "beads"}
_KNOWN_OF_BEADS = {"prefix", "repo"}
_TOP = ("version", "type", "rigs")
#: The user and the password in a URL, and what can hold a token.
_CREDENTIALS = re.compile(r"://[^/\s]*@|[?#].*", re.DOTALL)


def convert(file: Path, town: Path, converted: Converted) -> None:
    """Each rig is a project; ids that begin with its prefix belong to it."""
    document = table(files.parse_json(files.read_text(file, WHAT), str(file), WHAT), str(file))
    converted.unknown += [f"{file.name}: {key}" for key in document if key not in _TOP]
    rigs = table(document.get("rigs") or {}, f"{file}: rigs")
    if len(rigs) > RIGS_MAX:
        raise Invalid(f"{file}: more than {RIGS_MAX} rigs", UNCHANGED)
    unknown: dict[str, None] = {}
    unknown_settings: dict[str, None] = {}
    bare: list[str] = []
    cloneless: list[str] = []
    names = base.renamed(rigs, "project", converted)
    for own, value in rigs.items():
        name = names.get(own, own)
        rig = table(value or {}, f"{file}: rigs.{own}")
        beads = table(rig.get("beads") or {}, f"{file}: rigs.{own}.beads")
        unknown |= dict.fromkeys(f"*.{key}" for key in rig if key not in _KNOWN)
        unknown |= dict.fromkeys(f"*.beads.{key}" for key in beads if key not in _KNOWN_OF_BEADS)
        folder = town / (own if _is_folder(own) else name)
        prefix = str(beads.get("prefix") or _own_prefix(folder)).rstrip("-")
        if f"{prefix}-" == TOWN_PREFIX:
            converted.note(
                f"Rig {name} is left out: {TOWN_PREFIX} beads belong to the town itself."
            )
            continue
        repo = _clone(folder, rig.get("local_repo"))
        found = {"prefix": f"{prefix}-" if prefix else None, "repo": repo and str(repo)}
        found["agent"] = _own_agent(folder, unknown_settings)
        converted.projects[name] = {key: value for key, value in found.items() if value}
        if not prefix:
            bare.append(name)
        if repo is None:
            url = _CREDENTIALS.sub(_open, str(rig.get("git_url") or ""))
            cloneless.append(f"{name} ({url})" if url else name)
    converted.unknown += [f"{file.name}: rigs.{key}" for key in unknown]
    converted.unknown += [f"RIG/{SETTINGS}: {key}" for key in unknown_settings]
    _note(converted, bare, cloneless)


def _note(converted: Converted, bare: list[str], cloneless: list[str]) -> None:
    if bare:
        converted.note(
            f"No bead prefix, so no bead is routed there by its id: {listed(bare, NAMED_MAX)}. "
            "To give one: `fairlane project set RIG --prefix PREFIX-`."
        )
    if cloneless:
        converted.note(
            f"No clone was found in the town: {listed(cloneless, NAMED_MAX)}. "
            "`fairlane project set RIG --repo PATH` gives a project the clone to work in."
        )


def _is_folder(name: str) -> bool:
    """Whether a name can be that of a folder in the town."""
    return name not in ("", ".", "..") and not {"/", "\0"} & {*name}


def _own_prefix(folder: Path) -> str:
    file = folder / IDENTITY
    return (base.read_json(file).take("beads.prefix", text) or "") if file.is_file() else ""


def _own_agent(folder: Path, unknown: dict[str, None]) -> str | None:
    """The agent of a rig's polecats; the rest of its settings is listed."""
    file = folder / SETTINGS
    if not file.is_file():
        return None
    keys = base.read_json(file)
    keys.drop("type", "version")
    agent, polecat = keys.take("agent", agent_name), keys.take("role_agents.polecat", agent_name)
    unknown |= dict.fromkeys(keys.unknown())
    return polecat or agent


def _clone(folder: Path, local: object) -> Path | None:
    """The clone of a rig: one of the town's, else the one that the rig was made from."""
    inside = folder.parent.resolve()
    for name in CLONES:
        clone = folder / name
        if (clone / ".git").exists() and clone.resolve().is_relative_to(inside):
            return clone.absolute()
    if isinstance(local, str) and local:
        made_from = Path(os.path.expanduser(local)).absolute()  # noqa: PTH111 - no error, but false
        return made_from if os.path.exists(made_from / ".git") else None  # noqa: PTH110 - the same
    return None


def _open(found: re.Match[str]) -> str:
    return "://" if found[0].startswith("://") else ""
