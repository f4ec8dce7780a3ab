"""Patches: the text of changes, cut where a file, or all of them, are too long to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from fairlane.workspaces.work.changes import WORDS, Change
from fairlane.workspaces.work.reading import Reader

#: Most bytes of the patch of one file, and of all.
FILE_BYTES_MAX, ALL_BYTES_MAX = 1 << 20, 8 << 20
_PREFIXES = ("--src-prefix=a/", "--dst-prefix=b/", "--abbrev=12", "-U3", "-p")
_HEAD = b"diff --git "
_LINE_MAX = 1 << 16


def patches(
    reader: Reader, start: str, head: str, rows: Sequence[Change], wanted: Sequence[Change]
) -> tuple[list[str | None], bool]:
    """The patch of each wanted change, in order, and whether anything was left out.

    `rows` are all changes in git's order. A patch that there is no room for is None.
    """
    if not wanted:
        return [], False
    words = (*WORDS, *_PREFIXES, start, head)  # names would change which renames git finds
    asked = {row.names for row in wanted}
    texts: dict[tuple[bytes, ...], str] = {}
    room, cut = ALL_BYTES_MAX, False
    with reader.output(*words) as pipe:
        sections = _sections(pipe)
        for row in rows:
            parts = [part for _, part in zip(range(row.parts), sections, strict=False)]
            if row.names not in asked:
                continue
            data, was_cut = _joined(parts, min(FILE_BYTES_MAX, room))
            cut, room = cut or was_cut, room - len(data)
            if not parts or (was_cut and not data):
                cut = True
                break
            texts[row.names] = data.decode("utf-8", "replace")
    return [texts.get(row.names) for row in wanted], cut


def _joined(parts: Sequence[tuple[bytes, bool]], most: int) -> tuple[bytes, bool]:
    """The parts of one patch, cut at the end of a line."""
    data = b"".join(part for part, _ in parts)
    if len(data) <= most and not any(cut for _, cut in parts):
        return data, False
    return data[: data.rfind(b"\n", 0, most) + 1], True


def _sections(pipe: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The patch of one file after the other, and whether it was cut: it was too long.

    Every line of a file's contents has a sign before it, so that none can look like a head.
    """
    lines: list[bytes] = []
    size, cut, begins = 0, False, True
    while line := pipe.readline(_LINE_MAX):
        if begins and line.startswith(_HEAD) and lines:
            yield b"".join(lines), cut
            lines, size, cut = [], 0, False
        begins = line.endswith(b"\n")
        if cut or size + len(line) > FILE_BYTES_MAX:
            cut = True
            continue
        lines.append(line)
        size += len(line)
    if lines:
        yield b"".join(lines), cut
