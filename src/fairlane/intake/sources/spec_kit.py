"""spec-kit: `tasks.md` with `[P]`, and phases that wait for each other.

A task without `[P]` needs the one before it in its phase. A phase needs the one before; phases of
user stories, by their headings, need only what stands before the stories, and what follows them
needs all of them. A story's P1, P2, P3 are the priorities 100, 110, 120. What is indented under a
task is part of its prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fairlane.intake.files import path_of, read_text
from fairlane.intake.naming import name_for
from fairlane.intake.outline import NEEDS_READ
from fairlane.intake.sources.base import Collection, Found, Item, Standing, Where
from fairlane.intake.trackers.tasks_md import Line, Phase, Reader
from fairlane.model.errors import Invalid

WHAT = "a tasks.md of spec-kit, its folder, or the folder specs"
#: A feature with more tasks is none.
TASKS_MAX = 2_000
#: The name of a feature, the prefix of its ids, its file.
_Place = tuple[str, str, str]


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
    reader = Reader(origin, shown)
    phases = reader.read(text)
    if sum(len(phase.lines) for phase in phases) > TASKS_MAX:
        raise Invalid(f"{origin}: more than {TASKS_MAX:,} tasks", f"Give {WHAT}.", "unreadable")
    top = Collection(shown.rstrip("/") or name, name_for(name), name)
    collections, items = [top], []
    known = {line.id: line for phase in phases for line in phase.lines}
    for at, phase in enumerate(phases):
        group = top.id
        if phase.number:
            group = f"{shown}phase-{phase.number}"
            title = name_for(name, "phase", phase.number)
            collections.append(Collection(group, title, phase.title, top.id))
        barrier = _barrier(phases, at)
        for place, line in enumerate(phase.lines):
            before = [] if line.beside else _before(phase.lines, place)
            needs = [*barrier[:NEEDS_READ], *before, *line.needs(known)]
            items.append(_item(line, needs, known, phase, group, (name, shown, origin)))
    return Found(tuple(items), tuple(collections), tuple(reader.left_out))


def _before(lines: Sequence[Line], place: int) -> list[str]:
    """The last task before a place that is still open, and what was ticked off since."""
    first = place
    while first and place - first < NEEDS_READ and (first == place or lines[first].done):
        first -= 1
    return [line.id for line in lines[first:place]]


def _barrier(phases: Sequence[Phase], at: int) -> list[str]:
    """What every task of a phase waits for: the phase before that is not all ticked off.

    Tasks that are ticked off are named too: whoever works on one may do so before the end.
    """
    story, before = phases[at].is_story, at - 1
    while story and before >= 0 and phases[before].is_story:
        before -= 1
    if before < 0:
        return []
    blockers = [phases[before]]
    while not story and phases[before].is_story and before and phases[before - 1].is_story:
        before -= 1
        blockers.insert(0, phases[before])
    earlier = [] if any(phase.is_open for phase in blockers) else _barrier(phases, before)
    return earlier + [line.id for phase in blockers for line in phase.lines]


def _item(
    line: Line,
    needs: Sequence[str],
    known: dict[str, Line],
    phase: Phase,
    group: str,
    place: _Place,
) -> Item:
    name, shown, origin = place
    origin_text = (
        f"This is {line.id} of specs/{name}/tasks.md. The documents beside that file tell "
    )
    origin_text += "what the feature is and how it is planned; keep to this task."
    meta = {"phase": phase.title, "story": line.story, "tags": line.tags}
    record: dict[str, object] = {
        "id": name_for(name, line.id),
        "title": line.text,
        "prompt": f"{line.whole}\n\n{origin_text}",
        "priority": 90 + 10 * phase.rank if phase.rank else 100,
        "meta": {key: value for key, value in meta.items() if value},
    }
    if line.beside:
        record["parallel"] = True
    missing = [need for need in dict.fromkeys(line.needs(known)) if need not in known]
    return Item(
        shown + line.id,
        record,
        Standing.CLOSED if line.done else Standing.OPEN,
        tuple(shown + need for need in dict.fromkeys(needs) if need in known),
        "; ".join(f"needs {need}, which is not there" for need in missing),
        group,
        "ticked off" if line.done else "",
        f"{origin}:{line.number}",
    )
