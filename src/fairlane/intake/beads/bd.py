"""`bd`: the program that has the beads. What it is asked, and what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairlane.intake.beads.bead import id_of, parse
from fairlane.intake.files import Printed, ask
from fairlane.intake.sources.base import Where
from fairlane.model.errors import Invalid, Refused, TryLater
from fairlane.model.record import replace

PROGRAM = ("bd",)
ACTOR = "fairlane"
LISTED, READY = ("list", "--json", "--limit", "0"), ("ready", "--json", "--limit", "0")
#: Sling contexts may be hidden from the list, and those that were closed are.
SLUNG = (*LISTED, "--label", "gt:sling-context")
#: What is in the folder of a town.
TOWN_FILES = ("mayor/town.json", "mayor/rigs.json")
#: Records, each with its place.
Rows = list[tuple[str, object]]


def everything(where: Where) -> tuple[Rows, set[str], str]:
    """All that is listed, the ids of what is ready, and a note where sling contexts are not."""
    rows = parse(listed(where, (*_program(where), *LISTED)), "bd list")
    ready = parse(listed(where, (*_program(where), *READY)), "bd ready")
    known = {id_of(row) for _, row in rows}
    slung, note = _contexts(where)
    for place, row in (*ready, *slung):
        if id_of(row) not in known:
            known.add(id_of(row))
            rows.append((place, row))
    return rows, {id_of(row) for _, row in ready}, note


def _contexts(where: Where) -> tuple[Rows, str]:
    """The sling contexts of this place and, as older towns have them, of the town above it."""
    rows, note = _slung(where)
    town = _town_above(where.path)
    if town is not None:
        more, _ = _slung(replace(where, path=town))
        rows += more
    return rows, note


def _slung(where: Where) -> tuple[Rows, str]:
    """Open and closed sling contexts; a note where they cannot be listed."""
    error = ""
    for words in ((*SLUNG, "--all"), SLUNG):
        try:
            return parse(listed(where, (*_program(where), *words)), "bd list"), ""
        except (Invalid, TryLater) as failure:
            error = failure.message
    return [], f"sling contexts cannot be listed: {error}"


def _town_above(folder: Path | None) -> Path | None:
    above = () if folder is None else folder.absolute().parents
    return next((town for town in above if _is_town(town)), None)


def _is_town(folder: Path) -> bool:
    return any((folder / name).is_file() for name in TOWN_FILES)


def _program(where: Where) -> tuple[str, ...]:
    """`bd` or its replacement; of a whole command line the words before the verb."""
    words = where.command or PROGRAM
    ends = [at for at, word in enumerate(words) if word in ("list", "ready") and "--json" in words]
    return words[: ends[0]] if ends else words


def _ask(where: Where, words: Sequence[str]) -> Printed:
    folder = where.path
    if folder is not None and folder.name == "issues.jsonl":
        folder = folder.parent
    if folder is not None and folder.name == ".beads":
        folder = folder.absolute().parent
    if folder is not None and not folder.is_dir():
        hint = "Give the folder in which bd works."
        raise Refused(f"{where.name} is a file: nothing can be told to it", hint, "not_writable")
    return ask(words, where.seconds, folder, {"BEADS_ACTOR": ACTOR})


def listed(where: Where, words: Sequence[str]) -> str:
    """What a question is answered with."""
    printed = _ask(where, words)
    if printed.code != 0:
        shown = " ".join(words)
        message = f"{shown}: {_last(printed) or f'exit {printed.code}'}"
        hint = f"Try `{shown}` yourself, or give a file that it printed."
        raise TryLater(message, hint, "source_unavailable")
    return printed.out


def tell(where: Where, *words: str) -> str:
    """What it says to an order."""
    printed = _ask(where, (*_program(where), *words))
    if printed.code != 0:
        message = f"bd {words[0]} {words[1]}: {_last(printed) or f'exit {printed.code}'}"
        raise Refused(message, "It is told again at the next sync.")
    return printed.out


def _last(printed: Printed) -> str:
    return (printed.err or printed.out.strip()).rpartition("\n")[2]
