"""Plain files: what agents can write is read without following links, waiting, or growing."""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterator
from pathlib import Path

#: A file that leads git elsewhere holds one path.
LINE_BYTES_MAX = 8192


class NotPlain(Exception):
    """What is wrong with a file or a folder."""


def bytes_of(path: Path, limit: int) -> bytes:
    """The bytes of a regular file; a pipe, a link or a longer file is refused."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotPlain(f"{shown(path)} cannot be read: {error.strerror}") from error
    with os.fdopen(number, "rb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_size > limit:
            raise NotPlain(f"{shown(path)} is not a small file")
        return file.read(limit)


def line_of(path: Path) -> str:
    """What a small regular file says, without its line's end."""
    text = os.fsdecode(bytes_of(path, LINE_BYTES_MAX)).rstrip("\r\n")
    if "\0" in text or "\n" in text:
        raise NotPlain(f"{shown(path)} does not hold one line")
    return text


def check(folder: Path, skip: Container[str] = ()) -> None:
    """Only folders and regular files lie below: git would write through a link, wait at a pipe.

    `skip` names entries of the folder itself. Sockets stay: opening one fails at once.
    """
    for entry in entries(folder, skip):
        if entry.is_symlink():
            raise NotPlain(f"{shown(entry.path)} is a link")
        if is_device(entry):
            raise NotPlain(f"{shown(entry.path)} is a pipe or a device")


def check_no_pipes(folder: Path) -> None:
    """No pipe and no device lies below, at which git would wait for ever."""
    for entry in entries(folder):
        if is_device(entry):
            raise NotPlain(f"{shown(entry.path)} is a pipe or a device")


def entries(folder: Path, skip: Container[str] = ()) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder; links are not followed."""
    folders = [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as found:
                listed = [entry for entry in found if entry.name not in skip]
        except FileNotFoundError:
            continue  # somebody removed it meanwhile
        except OSError as error:
            raise NotPlain(f"{shown(error.filename)} cannot be read: {error.strerror}") from error
        for entry in listed:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
        skip = ()


def is_device(entry: os.DirEntry[str]) -> bool:
    """Whether opening it could wait for ever, or never end."""
    if entry.is_symlink() or entry.is_dir() or entry.is_file():
        return False
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def followed(path: Path) -> Path:
    """Where a path leads; a link to itself leads nowhere, and is no error (`resolve` raises)."""
    return Path(os.path.realpath(path))


def real(path: Path) -> Path:
    """A path with every link on the way to it followed, but not itself."""
    return followed(path.parent) / path.name


def shown(name: str | Path) -> str:
    """A name out of a repository, fit for a message."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(name))
