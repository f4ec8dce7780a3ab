"""What a hostile agent knows of its surroundings; runs in the attempt, standard library only."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Scene:
    """The attempt's folders, and what it was told of the rest of the machine."""

    def __init__(self, told: dict[str, str], name: str = "") -> None:
        self.told, self.name = told, name
        self.work = Path.cwd()
        self.home = Path(told["home"])
        self.repo = Path(told["repo"])
        self.other = Path(told["other"])
        self.user = Path(told["user"])
        self.task = os.environ.get("FAIRLANE_TASK", "")
        self.attempt = os.environ.get("FAIRLANE_ATTEMPT", "1")
        self.lease = os.environ.get("FAIRLANE_LEASE", "")
        self.run = self.home / "runs" / self.task / self.attempt
        self.artifacts = Path(os.environ.get("FAIRLANE_ARTIFACTS", "."))

    @property
    def program(self) -> str:
        """A program that leaves a witness with this trick's name."""
        return str(Path(self.told["programs"]) / self.name)

    @property
    def victim(self) -> Path:
        """A file of the user's, for this trick alone."""
        return Path(self.told["victims"]) / self.name

    @property
    def nowhere(self) -> Path:
        """A path where nothing is, and nothing may ever be."""
        return Path(self.told["nowhere"]) / self.name

    @property
    def own(self) -> Path:
        """The git folder of this work tree alone."""
        place = self.work / ".git"
        if place.is_dir():
            return place
        return Path(place.read_text(encoding="utf-8").partition(" ")[2].strip())

    @property
    def common(self) -> Path:
        """The git folder that all work trees share; a clone has only its own."""
        own = self.own
        return own.parents[1] if own.parent.name == "worktrees" else own

    def hook(self, folder: Path, hook: str) -> None:
        """A hook that leaves a witness."""
        put(folder / hook, f'#!/bin/sh\nexec "{self.program}" "$@"\n', 0o755)


def shown(text: bytes) -> None:
    """Whatever was read goes to the output, where the test looks for canaries."""
    os.write(1, text.replace(b"\0", b"\n")[: 1 << 20] + b"\n")


def put(path: Path, text: str | bytes, mode: int = 0o644) -> None:
    """A file in the place of whatever is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    away(path)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)


def away(path: Path) -> None:
    """Nothing is there any more."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def link(path: Path, target: Path) -> None:
    """A link in the place of whatever is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    away(path)
    path.symlink_to(target)


def fifo(path: Path) -> None:
    """A named pipe, which blocks whoever opens it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    away(path)
    os.mkfifo(path)


def zeros(path: Path) -> None:
    """A device that never ends; only root can make one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    away(path)
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))


def huge(path: Path) -> None:
    """A file of a terabyte that needs no disk."""
    put(path, b"")
    os.truncate(path, 1 << 40)


def setting(key: str, value: str) -> str:
    """One line of a git configuration, with its section."""
    section, _, last = key.rpartition(".")
    first, dot, middle = section.partition(".")
    head = f'[{first} "{middle}"]' if dot else f"[{first}]"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{head}\n\t{last} = "{escaped}"\n'


def append(path: Path, text: str) -> None:
    """More text at the end of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def perform(told: dict[str, str], tricks: list[tuple[str, str, list[Any]]], code: int) -> None:
    """Try every trick of a batch; a trick that is refused is tried too."""
    if os.environ["FAIRLANE_ATTEMPT"] != "1":
        os._exit(0)  # the harm is done; see what the next attempt makes of it
    deeds: dict[str, Callable[..., None]] = dict(vars(sys.modules["__main__"]))
    artifacts = os.open(os.environ["FAIRLANE_ARTIFACTS"], os.O_DIRECTORY)  # wherever it is moved
    notes = []
    append(Path("work"), "work\n")
    for name, deed, words in tricks:
        try:
            deeds[deed](Scene(told, name), *words)
            notes.append([name, "done"])
        except Exception as error:
            notes.append([name, f"{type(error).__name__}: {error}"])
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    os.write(os.open("notes", flags, dir_fd=artifacts), json.dumps(notes).encode())
    os.rename("notes", "notes.json", src_dir_fd=artifacts, dst_dir_fd=artifacts)
    while told["wait"] and not Path(told["wait"]).exists():
        time.sleep(0.05)
    os._exit(code)
