"""Tricks that read what they must not, or write outside: they must fail inside a sandbox."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.attackers.tricks.scene import Scene, shown


def reads(at: Scene, path: str) -> None:
    """Print a file of the machine; `{}` names places that the agent was told."""
    shown(Path(path.format(**at.told)).read_bytes())


def reads_tree(at: Scene, folder: str) -> None:
    """Print every file below a folder."""
    top = Path(folder.format(**at.told))
    found = 0
    for path in top.rglob("*"):
        if path.is_file() and ".git" not in path.parts and path.stat().st_size < 1 << 20:
            shown(path.read_bytes())
            found += 1
    if not found:
        raise FileNotFoundError(str(top))


def reads_environments(at: Scene) -> None:
    """Look into the environment and the command line of every process; print canaries alone."""
    seen = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            for name in ("environ", "cmdline"):
                try:
                    words = (folder / name).read_bytes().split(b"\0")
                    shown(b"\n".join(word for word in words if b"canary-" in word))
                    seen += name == "environ"
                except OSError:
                    continue
    if not seen:
        raise PermissionError("no environment of another process")


def reads_memory(at: Scene) -> None:
    """Look through the root, the folders and the open files of every other process."""
    seen = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            for name in ("root", "cwd"):
                try:
                    secret = folder / name / at.told["user"].lstrip("/") / ".ssh" / "id_ed25519"
                    shown(secret.read_bytes())
                    seen += 1
                except OSError:
                    continue
    if not seen:
        raise PermissionError("no other root")


def reads_by_link(at: Scene) -> None:
    """A link in the work tree that leads to a secret."""
    link_path = at.work / "harmless"
    link_path.symlink_to(Path(at.told["user"]) / ".ssh" / "id_ed25519")
    shown(link_path.read_bytes())


def writes(at: Scene, path: str) -> None:
    """Write outside of the work tree."""
    target = Path(path.format(name=at.name, **at.told))
    with target.open("a", encoding="utf-8") as file:
        file.write("written by an agent\n")


def removes(at: Scene, path: str) -> None:
    """Remove or rename something outside."""
    target = Path(path.format(name=at.name, **at.told))
    target.rename(target.with_name(target.name + "-taken"))


def opens_modes(at: Scene, path: str) -> None:
    """Make a secret readable for everybody."""
    Path(path.format(name=at.name, **at.told)).chmod(0o777)


def hard_link(at: Scene) -> None:
    """A hard link to a secret, inside the work tree."""
    os.link(Path(at.told["user"]) / ".ssh" / "id_ed25519", at.work / "linked")
    shown((at.work / "linked").read_bytes())


def traces(at: Scene) -> None:
    """Signal the daemon and look at its memory."""
    daemon = int(at.told["daemon"])
    os.kill(daemon, 0)
    shown(Path(f"/proc/{daemon}/maps").read_bytes()[:100])
