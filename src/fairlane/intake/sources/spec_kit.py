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
from typing import Any

from fairlane.intake.files import read_text
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
    if where.path is None:
        raise Invalid("there is nothing to read", f"Give {WHAT}.", code="unreadable")
    if not where.path.is_dir() or (where.path / "tasks.md").is_file():
        path = where.path / "tasks.md" if where.path.is_dir() else where.path
        return _feature(read_text(path, WHAT), str(path), _name(path), "")
    files = sorted([*where.path.glob("*/tasks.md"), *where.path.glob("specs/*/tasks.md")])
    if not files:
        raise Invalid(f"{where.path}: no tasks.md in it", f"Give {WHAT}.", code="unreadable")
    return _together(
        _feature(read_text(file, WHAT), str(file), _name(file), f"{_name(file)}/") for file in files
    )


def _name(path: Path) -> str:
    return path.absolute().parent.name


def _together(found: Iterator[Found]) -> Found:
    all_of = list(found)
    return Found(
        tuple(item for each in all_of for item in each.items),
        tuple(group for each in all_of for group in each.collections),
        tuple(left for each in all_of for left in each.left_out),
    )


def _feature(text: str, origin: str, name: str, shown: str) -> Found:
    """The tasks of one file; `shown` stands before its ids where there are several files."""
    phases, left_out = _parse(text, origin, shown)
    top = Collection(shown.rstrip("/") or name, as_name(name), name)
    collections, items = [top], []
    known = {line.id: line for phase in phases for line in phase.lines}
    for at, phase in enumerate(phases):
        number = found[1] if (found := _NUMBER.match(phase.title)) else ""
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
    phases, left_out, seen = [_Phase("")], [], set()
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= bool(_FENCE.match(line))
        if fenced:
            continue  # an example
        if heading := _PHASE.match(line):
            phases.append(_Phase(heading[1].strip()))
        elif _HEADING.match(line):
            phases.append(_Phase(""))
        elif found := _TASK.match(line):
            done, name, beside, story, told = found.groups()
            if name in seen or not told.strip():
                why = "its id appears twice" if name in seen else "it says nothing"
                left_out.append(LeftOut(shown + name, why, f"{origin}:{number}", bad=True))
                continue
            seen.add(name)
            needs = [each for part in _NEEDS.findall(told) for each in _ID.findall(part)]
            made = _Line(name, told.strip(), done != " ", bool(beside), story or "", number, needs)
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
    place: tuple[str, str, str],
) -> Item:
    name, shown, origin = place
    rank = _RANK.search(phase.title)
    record: dict[str, Any] = {
        "id": as_name(name, line.id),
        "title": line.text,
        "prompt": f"{line.text}\n\nThis is {line.id} of specs/{name}/tasks.md. The documents "
        "beside that file tell what the feature is and how it is planned; keep to this task.",
        "priority": 90 + 10 * int(rank[1]) if rank and phase.is_story else 100,
        "meta": {"phase": phase.title},
    }
    if line.story:
        record["meta"] |= {"story": line.story.strip(" []")}
    if line.beside:
        record["parallel"] = True
    missing = [each for each in line.needs if each not in known]
    return Item(
        shown + line.id,
        record,
        Standing.CLOSED if line.done else Standing.OPEN,
        tuple(
            shown + each for each in dict.fromkeys(needs) if each in known and not known[each].done
        ),
        "; ".join(f"needs {each}, which is not there" for each in missing),
        group,
        "ticked off" if line.done else "",
        f"{origin}:{line.number}",
    )
