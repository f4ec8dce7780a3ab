"""Settings of the sandbox: `[sandbox]` of the settings file, for all, an agent or a project."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairlane.model.instant import Micros
from fairlane.model.record import dataclass, field, replace
from fairlane.model.values import (
    Reader,
    choice,
    duration,
    flag,
    line,
    read_all,
    section,
    several,
    whole,
    wrong,
)

_SIZE = r"([1-9]\d{0,14}) ?([KMGT])(?:i?B)?"
SANDBOXES = ("none", "bwrap", "landlock")


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """What holds agents, and what they may use; None: another table or the default decides."""

    kind: str | None = None
    network: bool | None = None
    memory: int | None = None  # bytes, of all processes of an attempt
    processes: int | None = None
    files: int | None = None  # open at once, in one process
    cpu: Micros | None = None  # time, of one process
    write: tuple[str, ...] | None = None  # folders in addition to its own
    read: tuple[str, ...] | None = None
    project: Mapping[str, SandboxSettings] = field(default_factory=dict)

    def over(self, other: SandboxSettings) -> SandboxSettings:
        """These, where the other one says nothing."""
        keys = {name: getattr(other, name) for name in SANDBOX}
        said = {name: value for name, value in keys.items() if value is not None}
        return replace(self, **said) if said else self


#: What an agent runs in where no table says anything.
NO_SANDBOX = SandboxSettings("none", True, write=(), read=())
#: A table that says nothing.
SILENT = SandboxSettings()


def _size(value: object) -> int:
    """Bytes, or a text such as 512M or 4GiB."""
    match = re.fullmatch(_SIZE, value) if isinstance(value, str) else None
    if match:
        return int(match[1]) << 10 * ("KMGT".index(match[2]) + 1)
    if isinstance(value, str):
        raise wrong("a size", value, 'Write it as "512M" or "4G".')
    return whole(1 << 20)(value)


def _place(value: object) -> str:
    """The path of a folder or file."""
    path = line(value)
    if not path.startswith(("/", "~/")) or ".." in path.split("/"):
        raise wrong("a whole path", value, 'Write it as "/data/models" or "~/.npm".')
    return path


def sandbox(value: object) -> SandboxSettings:
    """One table."""
    return SandboxSettings(**read_all(SANDBOX, value))


def sandboxes(value: object) -> dict[str, SandboxSettings]:
    """By the name of a project."""
    return {name: sandbox(entry) for name, entry in section(value, "sandbox.project").items()}


#: The keys of a table.
SANDBOX: Mapping[str, Reader[object]] = {
    "kind": choice(SANDBOXES),
    "network": flag,
    "memory": _size,
    "processes": whole(1),
    "files": whole(16),
    "cpu": duration,
    "write": several(_place),
    "read": several(_place),
}
