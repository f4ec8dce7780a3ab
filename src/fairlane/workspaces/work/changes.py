"""Changes: which files differ between two commits, with the lines added and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import IO, Literal

from fairlane.model.record import dataclass, field
from fairlane.workspaces import git
from fairlane.workspaces.work.reading import Reader

Letter = Literal["A", "M", "D", "R"]

#: Most files of which anything but their number is kept.
FILES_MAX = 10_000
#: Renames are found among so many files; with more of them they are a removal and an addition.
RENAMES_MAX = 1000
#: The words of every comparison of two trees.
WORDS = (
    "diff-tree", "-r", "-M", f"-l{RENAMES_MAX}", "--no-ext-diff", "--no-textconv", "--no-color",
    "--ignore-submodules=none", "--submodule=short",
)  # fmt: skip
_CHUNK = 1 << 16
#: Longest record of git that is read: two paths, modes and names of objects.
_RECORD_MAX = 1 << 17


@dataclass(frozen=True, slots=True)
class Change:
    """One file that differs. Names are text: what is no UTF-8 in them is replaced."""

    path: str
    change: Letter
    old_path: str | None = None
    added: int = 0
    removed: int = 0
    binary: bool = False
    parts: int = field(default=1, compare=False)  # of git's patch; a file that became a link has 2
    names: tuple[bytes, ...] = field(default=(), compare=False, repr=False)  # exactly


def changes(
    reader: Reader,
    start: str,
    head: str,
    most: int = FILES_MAX,
    look: Callable[[Change], None] | None = None,
) -> tuple[list[Change], int]:
    """The files that differ, and how many more than `most` there are; `look` sees every one."""
    found: list[Change] = []
    more = 0
    words = (*WORDS, "--raw", "--numstat", "-z", start, head)
    with reader.output(*words) as pipe:
        records = _records(pipe)
        lines = dict[bytes, tuple[bytes, bytes]]()
        for record in records:
            if record.startswith(b":"):
                row = _change(record, records)
                if look is not None:
                    look(row)
                if len(found) < most:
                    found.append(row)
                else:
                    more += 1
            elif len(lines) < most:
                added, removed, path = record.split(b"\t", 2)
                if not path:  # of a rename both names follow
                    next(records)
                    path = next(records)
                lines[path] = added, removed
    return [_counted(row, lines) for row in found], more


def links(reader: Reader, commit: str) -> dict[str, str]:
    """The links of a commit, each with the name of the object that says where it leads."""
    with reader.output("ls-tree", "-r", "-z", "--full-tree", commit) as pipe:
        rows = [row.partition(b"\t") for row in _records(pipe) if row.startswith(b"120000 ")]
    return {path.decode("utf-8", "replace"): about.split()[-1].decode() for about, _, path in rows}


def _records(pipe: IO[bytes]) -> Iterator[bytes]:
    """What git separates by NUL; one that is too long is no path of a file system: refused."""
    rest = b""
    while chunk := pipe.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole
        if len(rest) > _RECORD_MAX:
            raise git.GitError(f"a commit has a name of over {_RECORD_MAX >> 10} KiB")


def _change(record: bytes, records: Iterator[bytes]) -> Change:
    """`:100644 100644 abc def M`, then its path, or both."""
    letter = record.rsplit(b" ", 1)[-1][:1].decode("ascii", "replace")
    old, _, _ = record[1:].partition(b" ")
    names = tuple(next(records) for _ in range(2 if letter in "RC" else 1))
    shown = [name.decode("utf-8", "replace") for name in names]
    letters: dict[str, Letter] = {"A": "A", "D": "D", "R": "R"}
    parts = 2 if letter == "T" and old != b"000000" else 1
    before = shown[0] if len(shown) > 1 else None
    return Change(shown[-1], letters.get(letter, "M"), before, parts=parts, names=names)


def _counted(row: Change, lines: dict[bytes, tuple[bytes, bytes]]) -> Change:
    added, removed = lines.get(row.names[-1], (b"0", b"0"))
    binary = added == b"-"
    return Change(
        row.path, row.change, row.old_path, 0 if binary else int(added),
        0 if binary else int(removed), binary, row.parts, row.names,
    )  # fmt: skip


def named(rows: Sequence[Change], files: Sequence[str]) -> list[Change]:
    """Those that are one of these files, or lie below one of these folders; none: all."""
    wanted = [name.removeprefix("./").rstrip("/") for name in files]
    if not wanted or "." in wanted or "" in wanted:
        return list(rows)
    return [row for row in rows if any(_is_below(row, name) for name in wanted)]


def _is_below(row: Change, name: str) -> bool:
    paths = (row.path,) if row.old_path is None else (row.path, row.old_path)
    return any(path == name or path.startswith(f"{name}/") for path in paths)
