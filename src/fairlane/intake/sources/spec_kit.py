"""spec-kit: `tasks.md` with `[P]`, and phases that wait for each other.

A task without `[P]` needs the one before it in its phase. A phase needs the one before; phases of
user stories need only what stands before the stories, and what follows them needs all of them.
A story's P1, P2, P3 are the priorities 100, 110, 120.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairlane.intake.files import path_of, read_text
from fairlane.intake.outline import as_name
from fairlane.intake.sources.base import Collection, Found, Item, LeftOut, Standing, Where
from fairlane.model.errors import Invalid

WHAT = "a tasks.md of spec-kit, its folder, or the folder specs"
_TASK = re.compile(r"^\s*[-*]\s*\[([ xX])\]\s+(T\d+)\b[:.]?\s*(\[P\]\s*)?(\[US\d+\]\s*)?(.*)$")
_ALMOST = re.compile(r"^\s*[-*]\s*\[.?\]\s*\**T[\dX]+")
_PHASE = re.compile(r"^##\s+(Phase\s+\S+.*)$")
_HEADING = re.compile(r"^##\s")
_FENCE = re.compile(r"^\s*(```|~~~)")
_NUMBER = re.compile(r"^Phase\s+([\w.]+)")
_NEEDS = re.compile(r"\(depends on ([^)]*)\)", re.IGNORECASE)
_ID = re.compile(r"T\d+")
_STORY = re.compile(r"\buser stor(?:y|ies)\b|\bUS\d+\b", re.IGNORECASE)
_RANK = re.compile(r"\bP([1-9])\b")
#: The name of a feature, the prefix of its ids, its file.
_Place = tuple[str, str, str]


@dataclass(slots=True)
class _Line:
    """One task."""

    id: str
    text: str
    done: bool
    beside: bool  # [P]
    story: str
    number: int  # of the line
    needs: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Phase:
    title: str
    lines: list[_Line] = field(default_factory=list)

    @property
    def is_story(self) -> bool:
        return bool(_STORY.search(self.title)) or any(line.story for line in self.lines)

    @property
    def open_ids(self) -> list[str]:
        return [line.id for line in self.lines if not line.done]


def read(where: Where) -> Found:
    """One feature, or every feature of the folder `specs`."""
    if where.text is not None:
        return _feature(where.text, where.name, "spec", "")
    path = path_of(where, WHAT)
    if not path.is_dir() or (path / "tasks.md").is_file():
        path = path / "tasks.md" if path.is_dir() else path
        return _feature(read_text(path, WHAT), str(path), _name(path), "")
    files = sorted([*path.glob("*/tasks.md"), *path.glob("specs/*/tasks.md")])
    if not files:
        raise Invalid(f"{path}: no tasks.md in it", f"Give {WHAT}.", code="unreadable")
    return _together(
        _feature(read_text(file, WHAT), str(file), _name(file), f"{_name(file)}/") for file in files
    )


def _name(path: Path) -> str:
    return path.absolute().parent.name


def _together(features: Iterator[Found]) -> Found:
    all_of = list(features)
    return Found(
        tuple(item for feature in all_of for item in feature.items),
        tuple(group for feature in all_of for group in feature.collections),
        tuple(left for feature in all_of for left in feature.left_out),
    )


def _feature(text: str, origin: str, name: str, shown: str) -> Found:
    """The tasks of one file; `shown` prefixes its ids where there are several files."""
    phases, left_out = _parse(text, origin, shown)
    top = Collection(shown.rstrip("/") or name, as_name(name), name)
    collections, items = [top], []
    known = {line.id: line for phase in phases for line in phase.lines}
    for at, phase in enumerate(phases):
        number = digits[1] if (digits := _NUMBER.match(phase.title)) else ""
        group = top.id
        if number:
            group = f"{shown}phase-{number}"
            collections.append(
                Collection(group, as_name(name, "phase", number), phase.title, top.id)
            )
        barrier = _barrier(phases, at)
        for place, line in enumerate(phase.lines):
            before = phase.lines[place - 1].id if place and not line.beside else None
            needs = [*barrier, *([before] if before else []), *line.needs]
            items.append(_item(line, needs, known, phase, group, (name, shown, origin)))
    return Found(tuple(items), tuple(collections), tuple(left_out))


def _parse(text: str, origin: str, shown: str) -> tuple[list[_Phase], list[LeftOut]]:
    phases, left_out, ids = [_Phase("")], [], set()
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= bool(_FENCE.match(line))
        if fenced:
            continue  # an example
        if heading := _PHASE.match(line):
            phases.append(_Phase(heading[1].strip()))
        elif _HEADING.match(line):
            phases.append(_Phase(""))
        elif parts := _TASK.match(line):
            done, name, beside, story, words = parts.groups()
            if name in ids or not words.strip():
                why = "its id appears twice" if name in ids else "it says nothing"
                left_out.append(LeftOut(shown + name, why, f"{origin}:{number}", bad=True))
                continue
            ids.add(name)
            needs = [need for part in _NEEDS.findall(words) for need in _ID.findall(part)]
            made = _Line(name, words.strip(), done != " ", bool(beside), story or "", number, needs)
            phases[-1].lines.append(made)
        elif _ALMOST.match(line):
            why = "not of the form: - [ ] T001 [P] [US1] text"
            left_out.append(LeftOut(line.strip()[:40], why, f"{origin}:{number}", bad=True))
    return [phase for phase in phases if phase.lines], left_out


def _barrier(phases: Sequence[_Phase], at: int) -> list[str]:
    """What every task of a phase waits for: what is open of the phase before."""
    story, before = phases[at].is_story, at - 1
    while story and before >= 0 and phases[before].is_story:
        before -= 1
    if before < 0:
        return []
    blockers = list(phases[before].open_ids)
    while not story and phases[before].is_story and before and phases[before - 1].is_story:
        before -= 1
        blockers = phases[before].open_ids + blockers
    return blockers or _barrier(phases, before)


def _item(
    line: _Line,
    needs: Sequence[str],
    known: dict[str, _Line],
    phase: _Phase,
    group: str,
    place: _Place,
) -> Item:
    name, shown, origin = place
    rank = _RANK.search(phase.title)
    record: dict[str, object] = {
        "id": as_name(name, line.id),
        "title": line.text,
        "prompt": f"{line.text}\n\nThis is {line.id} of specs/{name}/tasks.md. The documents "
        "beside that file tell what the feature is and how it is planned; keep to this task.",
        "priority": 90 + 10 * int(rank[1]) if rank and phase.is_story else 100,
        "meta": {"phase": phase.title} | ({"story": line.story.strip(" []")} if line.story else {}),
    }
    if line.beside:
        record["parallel"] = True
    missing = [need for need in line.needs if need not in known]
    return Item(
        shown + line.id,
        record,
        Standing.CLOSED if line.done else Standing.OPEN,
        tuple(
            shown + need for need in dict.fromkeys(needs) if need in known and not known[need].done
        ),
        "; ".join(f"needs {need}, which is not there" for need in missing),
        group,
        "ticked off" if line.done else "",
        f"{origin}:{line.number}",
    )
