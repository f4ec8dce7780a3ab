"""`fairlane logs`: what an agent said and did, or the files as they were written."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import print_json, safe, write
from fairlane.model.errors import Invalid
from fairlane.model.visible import visible_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlane.model.documents.tasks import TranscriptAnswer

    Pages: TypeAlias = Callable[[str | None], TranscriptAnswer]  # by a cursor

#: How often a transcript that grows is looked at, and after how long without news the last words
#: are shown: before that they may turn out to be the answer.
POLL_SECONDS, QUIET_SECONDS = 0.2, 1.0
#: Entries asked for at once.
PAGE = 1000


class Which(NamedTuple):
    """Whose output is meant."""

    task: str
    attempt: int | None
    stream: str
    check: str | None


@click.command("logs")
@click.argument("task", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Go on until the attempt ends.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Default: the last.")
@click.option("--full", is_flag=True, help="Whole results of tools, not a line of each.")
@click.option("--raw", is_flag=True, help="The output as it was written.")
@click.option("--stderr", "errors", is_flag=True, help="Its error output, as it was written.")
@click.option("--check", metavar="NAME", help="What its check of this name printed.")
@click.option("--since", metavar="LENGTH|TIME", help="Only what was printed since then.")
@takes_call
def logs_(
    call: Call, task: str, follow: bool, attempt: int | None, full: bool, raw: bool, errors: bool,
    check: str | None, since: str | None,
) -> None:  # fmt: skip
    """What an agent said and did: its words, tools and results, turns, and its answer.

    A program that no parser reads shows its lines. Secrets are masked, and control characters are
    shown as text; `--raw` escapes them on a terminal alone.

    \b
    Example:
      fairlane logs t12 -f
      fairlane logs t12 --full --since 10m
      fairlane logs t12 --attempt 1 --raw
      fairlane logs t12 --check "make test"
    """
    which = Which(task, attempt, "stderr" if errors else "stdout", check)
    if call.json and not raw:
        with _pages(call, which, since) as pages:
            _as_json(call, pages, follow)
    elif raw or errors:
        _as_written(call, which, follow, since)
    else:
        with _pages(call, which, since) as pages:
            _as_text(call, pages, which, follow, full)


@contextmanager
def _pages(call: Call, which: Which, since: str | None) -> Iterator[Pages]:
    """How to ask for one page after another; the attempt stays the same."""

    def page(ask: Callable[..., TranscriptAnswer], cursor: str | None) -> TranscriptAnswer:
        nonlocal which
        asked = which._asdict() | {"limit": PAGE, "since": since}
        answer = ask("transcript", cursor=cursor, **asked)
        which = which._replace(attempt=answer["attempt"])
        return answer

    there = call.elsewhere()
    if there is not None:
        yield lambda cursor: page(there.ask, cursor)
        return
    from fairlane.app import answer_here

    with call.context() as context:
        yield lambda cursor: page(lambda name, **more: answer_here(context, name, **more), cursor)


def _read(call: Call, pages: Pages, follow: bool) -> Iterator[TranscriptAnswer | None]:
    """Page after page; None: nothing new has come for a while."""
    cursor, quiet = None, 0.0
    while True:
        page = pages(cursor)
        same, cursor = page["cursor"] == cursor, page["cursor"]
        quiet = quiet + POLL_SECONDS if same else 0.0
        yield page
        if page["ended"] or (same and not follow):
            return
        if same:
            call.clock.wait(POLL_SECONDS)
        if quiet >= QUIET_SECONDS:
            quiet = 0.0
            yield None


def _as_json(call: Call, pages: Pages, follow: bool) -> None:
    """One entry a line with `-f`; else one document, an entry a line."""
    before, end = "", ""
    for page in _read(call, pages, follow):
        if page is None:
            continue
        if not before and not follow:
            head = {key: page[key] for key in ("schema", "task", "attempt")}
            write(json.dumps(head, indent=2).removesuffix("\n}") + ',\n  "transcript": [')
            before = "\n    "
        for entry in page["entries"]:
            write(before + visible_json(json.dumps(entry, ensure_ascii=False)))
            before = ",\n    " if not follow else before
            write("\n" if follow else "")
        end = json.dumps({key: page[key] for key in ("cursor", "ended")}, indent=2)
        sys.stdout.flush()
    if not follow:
        write(("\n  " if before.startswith(",") else "") + "]," + end.removeprefix("{") + "\n")


def _as_text(call: Call, pages: Pages, which: Which, follow: bool, full: bool) -> None:
    from fairlane.cli.work.transcript_text import TranscriptText

    text, printed = TranscriptText(full), False
    for page in _read(call, pages, follow):
        for part in text.rest() if page is None else text.lines(page["entries"]):
            write(part + "\n")
            printed = True
        sys.stdout.flush()
    for part in text.rest():
        write(part + "\n")
        printed = True
    if not printed:
        print(safe(_nothing(call, which)), file=sys.stderr)


def _as_written(call: Call, which: Which, follow: bool, since: str | None) -> None:
    if since is not None:
        hint = "Leave --raw and --stderr out, or --since."
        raise Invalid("--since: a raw file has no times", hint, code="usage")
    if call.json:
        print_json(call.ask("logs", **which._asdict()))
        return
    printed = False
    for part in _parts(call, which, follow):
        _put(part)
        printed = True
    if not printed:
        print(safe(_nothing(call, which)), file=sys.stderr)


def _put(part: str) -> None:
    """Bytes as they were printed; nothing that a terminal would obey."""
    if sys.stdout.isatty():
        write("\n".join(safe(line.expandtabs()) for line in part.split("\n")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(part.encode("utf-8", "surrogateescape"))
    sys.stdout.flush()


def _nothing(call: Call, which: Which) -> str:
    """What to look at instead of an empty log."""
    other = "stdout" if which.stream == "stderr" else "stderr"
    if call.ask("logs", **(which._asdict() | {"stream": other}))["text"]:
        option = f" --attempt {which.attempt}" if which.attempt else ""
        option += f" --check {shlex.quote(which.check)}" if which.check else ""
        option += " --stderr" if other == "stderr" else ""
        return f"nothing on {which.stream}; see fairlane logs {which.task}{option}"
    return f"it has printed nothing; `fairlane show {which.task}` tells how it stands"


def _parts(call: Call, which: Which, follow: bool) -> Iterator[str]:
    """The log from its start; with `follow`, until the attempt has ended."""
    task, attempt, stream, check = which
    if call.server is not None:
        yield from call.remote().log(task, attempt, stream, follow, check)
        return
    from fairlane.service import logs

    with call.context() as context:
        read = logs.follow if follow else logs.read
        yield from read(context, task, attempt, stream, check)
