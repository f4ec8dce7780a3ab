"""`fairlane diff`: what an attempt changed, in a pager on a terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import cells, count, has_colour, paint, print_json, safe, warn, write
from fairlane.model.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlane.model.documents.work import DiffAnswer, PatchDocument

#: Columns of `--stat`, as git fills them.
STAT_COLUMNS = 80
#: The pager where nobody names one: it leaves short texts on the screen, and shows colours.
PAGER = ("less", "-FRX")
#: What a line of a patch begins with -> its colour.
_TINT = {"+": "green", "-": "red", "@": "cyan"}


@click.command("diff")
@click.argument("task", metavar="ID", envvar="FAIRLANE_TASK")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Default: the last.")
@click.option("--stat", is_flag=True, help="Only which files, with the lines added and removed.")
@click.option("--carried", is_flag=True, help="From the base: with the work that it started from.")
@takes_call
def diff_(
    call: Call, task: str, files: tuple[str, ...], attempt: int | None, stat: bool, carried: bool
) -> None:
    """What an attempt of a task changed, also after its branch was merged or deleted.

    A running attempt: what it has changed so far.

    \b
    Example:
      fairlane diff t12
      fairlane diff t12 --stat
      fairlane diff t12 --attempt 1 -- src/app.py
    """
    document: DiffAnswer = call.ask(
        "diff", task=task, attempt=attempt, files=list(files), carried=carried, stat=stat
    )
    if call.json:
        print_json(document)
        return
    if not document["files"]:
        what = "nothing in these files" if files else "nothing"
        print(f"attempt {document['attempt']} changed {what}", file=sys.stderr)
        return
    _page(stat_lines(document["files"]) if stat else patch_lines(document["files"]))
    if document["truncated"]:
        warn(f"not all of it is shown; name files: fairlane diff {task} -- FILE")


def patch_lines(files: Iterable[PatchDocument]) -> Iterator[str]:
    """The patches line by line, with colour on a terminal; what agents wrote moves no cursor.

    Elsewhere the end of a line stays as it is, so that git can apply the patch.
    """
    ends = "" if sys.stdout.isatty() else "\r"
    for file in files:
        text = file["patch"]
        if text is None:
            yield paint(safe(f"{file['change']} {file['path']}: too long to show"), "bold")
            continue
        in_head = True
        for line in text.removesuffix("\n").split("\n"):
            in_head = (in_head or line.startswith("diff --git ")) and not line.startswith("@@")
            end = ends if line.endswith("\r") else ""
            shown = visible(line.removesuffix(end), lines=True) + end
            style = "bold" if in_head else _TINT.get(line[:1])
            yield paint(shown, style) if style else shown


def stat_lines(files: list[PatchDocument]) -> Iterator[str]:
    """One line a file with a bar, as `git diff --stat` draws it, and a sum."""
    names = [_name(file) for file in files]
    numbers = ["Bin" if file["binary"] else str(file["added"] + file["removed"]) for file in files]
    wide = max(map(len, numbers))
    name_wide = min(max(map(cells, names)), STAT_COLUMNS - wide - 14)
    room = STAT_COLUMNS - name_wide - wide - 5
    most = max((file["added"] + file["removed"] for file in files), default=0)
    for file, name, number in zip(files, names, numbers, strict=True):
        short = _end_of(name, name_wide)
        gap = " " * (name_wide - cells(short))
        bar = "" if file["binary"] else _bar(file["added"], file["removed"], most, room)
        yield f" {short}{gap} | {number:>{wide}} {bar}".rstrip()
    added, removed = (sum(file[what] for file in files) for what in ("added", "removed"))
    yield f" {count(len(files), 'file')} changed, {added:,} added (+), {removed:,} removed (-)"


def _name(file: PatchDocument) -> str:
    old = file["old_path"]
    return safe(file["path"] if old is None else f"{old} => {file['path']}")


def _end_of(name: str, columns: int) -> str:
    """The end of a long name: it tells files apart."""
    if cells(name) <= columns:
        return name
    while cells(name) > columns - 3:
        name = name[1:]
    return f"...{name}"


def _bar(added: int, removed: int, most: int, room: int) -> str:
    """Signs in proportion, at least one of each that there is."""
    if most > room:
        added, removed = (
            max(1, lines * (room - 1) // most) if lines else 0 for lines in (added, removed)
        )
    return paint("+" * added, "green") + paint("-" * removed, "red")


def _page(lines: Iterable[str]) -> None:
    """Lines on standard output; on a terminal through a pager, without a shell."""
    words = _pager() if sys.stdout.isatty() else ()
    if words:
        sys.stdout.flush()
        try:
            with subprocess.Popen(words, stdin=subprocess.PIPE) as pager:
                assert pager.stdin is not None
                _feed(pager.stdin.fileno(), lines)
                pager.stdin = None
            return
        except OSError:
            warn(f"{words[0]} cannot be started; set PAGER")
    for line in lines:
        write(line + "\n")


def _feed(pipe: int, lines: Iterable[str]) -> None:
    """Whoever leaves the pager has read enough."""
    try:
        with os.fdopen(pipe, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in lines)
    except BrokenPipeError:
        return


def _pager() -> tuple[str, ...]:
    """The words of the pager; none: it is not wanted."""
    chosen = os.environ.get("PAGER")
    if chosen is None:
        return PAGER if has_colour() or os.environ.get("TERM", "dumb") != "dumb" else ()
    try:
        words = tuple(shlex.split(chosen))
    except ValueError:
        return ()
    return () if words == ("cat",) else words
