"""From the text of a workload file to a workload: every key is read strictly."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from fairlane.careful_files import read_file
from fairlane.intake.routing import DEFAULT_PROJECT
from fairlane.model import values
from fairlane.model.errors import FairlaneError, Invalid, did_you_mean
from fairlane.model.instant import DAY, Instant, parse_instant
from fairlane.model.project import Group, Project
from fairlane.model.values import Values
from fairlane.service import groups
from fairlane.service.projects import with_values
from fairlane.settings import AgentSettings, Settings
from fairlane.simulation.worlds.described import Workload, checked
from fairlane.simulation.worlds.file import house
from fairlane.simulation.worlds.file.added import read_source
from fairlane.simulation.worlds.file.amounts import profile
from fairlane.simulation.worlds.file.moments import Calendar, begin, read_hours
from fairlane.simulation.worlds.sources import Source

_T = TypeVar("_T")
#: A workload is a few pages; lists of recorded values make it longer.
FILE_BYTES_MAX = 4_000_000
#: Most tables of one sort, and most days.
TABLES_MAX, DAYS_MAX = 1000, 3660
#: The begin of a workload that does not say: a Monday.
BEGIN: Instant = parse_instant("2026-01-05T00:00:00Z")
CODE = "invalid_workload"

_PLAIN: Mapping[str, values.Reader[object]] = {
    "title": values.line,
    "begin": begin,
    "days": values.whole(1, DAYS_MAX),
    "agent": values.name,
}
_NAMED = ("hours", "work", "projects", "groups", "agents", "pools")
_LISTS = ("source", "worker", "act")
_KEYS = (*_PLAIN, *_NAMED, *_LISTS)


def load_workload(path: str | Path) -> Workload:
    """The workload in a file."""
    return parse_workload(read_workload(path), str(path))


def read_workload(path: str | Path) -> dict[str, object]:
    """The tables of a workload file as JSON could have them."""
    try:
        data = read_file(path, FILE_BYTES_MAX)
    except FileNotFoundError as error:
        raise Invalid(f"{path}: there is no such file", "Give the path of a workload.") from error
    except OSError as error:
        raise Invalid(f"{path}: cannot be read: {error.strerror}") from error
    return read_text(data, str(path))


def read_text(data: bytes, origin: str) -> dict[str, object]:
    """The tables of a text; a mistake is named with its place."""
    try:
        table = tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"), parse_float=_number)
        return {key: _plain(value) for key, value in table.items()}
    except UnicodeDecodeError as error:
        raise Invalid(f"{origin}: not UTF-8 text", "Save it as UTF-8.", CODE) from error
    except (ValueError, RecursionError) as error:
        hint = 'A workload is TOML: days = 5, begin = 2026-01-05T00:00:00Z, title = "A week".'
        raise Invalid(f"{origin}: not TOML: {error}", hint, CODE) from error


def _number(written: str) -> float:
    """A float that says the same in text: what is read is read exactly again."""
    number = float(written)
    if Decimal(repr(number)) != Decimal(written):
        raise ValueError(f"{written} has too many digits")
    return number


def _plain(value: object) -> object:
    """Dates and times as text; everything else stays."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, time):
        return value.isoformat("minutes")
    return value.isoformat() if isinstance(value, date) else value


def parse_workload(table: Mapping[str, object], origin: str = "workload") -> Workload:
    """The workload that tables describe; `origin` names it in errors."""
    try:
        return checked(_workload(table))
    except FairlaneError as error:
        raise Invalid(f"{origin}: {error.message}", error.hint, CODE) from None


def _workload(table: Mapping[str, object]) -> Workload:
    for key in values.section(table, ""):
        if key not in _KEYS:
            raise values.unknown("key", key, _KEYS)
    given: Values = values.read_all(_PLAIN, {key: table.get(key) for key in _PLAIN})
    calendar = Calendar(
        given.get("begin", BEGIN), _named(table, "hours", lambda row, _: read_hours(row))
    )
    sources = _several(
        table, "source", lambda row, where, at: read_source(calendar, row, where, at + 1)
    )
    agents = _named(table, "agents", _agent)
    workload = Workload(
        title=given.get("title", ""),
        begin=calendar.begin,
        days=given.get("days"),
        agent=given.get("agent"),
        work=_named(table, "work", profile),
        sources=sources,
        projects=_projects(_named(table, "projects", _project), sources),
        groups=_groups(table),
        agents=agents,
        limits=_named(table, "pools", lambda row, where: house.limits(calendar, row, where)),
        crews=_several(table, "worker", lambda row, where, _: house.worker(calendar, row, where)),
        done=tuple(
            sorted(
                _several(table, "act", lambda row, where, _: house.act(calendar, row, where)),
                key=lambda act: act.at,
            )
        ),
    )
    _refuse_unknown(workload)
    return workload


def _named(
    table: Mapping[str, object], key: str, read: Callable[[object, str], _T]
) -> dict[str, _T]:
    """The tables `[key.NAME]` by their names."""
    rows = values.section(table.get(key) or {}, key)
    if len(rows) > TABLES_MAX:
        raise Invalid(f"{key}: {len(rows)} tables are too many", f"Use at most {TABLES_MAX}.")
    made = {}
    for name, row in rows.items():
        try:
            made[values.name(name)] = read(values.section(row, f"{key}.{name}"), f"{key}.{name}")
        except Invalid as error:
            raise (
                error if error.message.startswith(key) else error.within(f"{key}.{name}")
            ) from None
    return made


def _several(
    table: Mapping[str, object], key: str, read: Callable[[object, str, int], _T]
) -> tuple[_T, ...]:
    """The tables `[[key]]` in their order."""
    rows = table.get(key) or []
    if not isinstance(rows, list):
        raise values.wrong("a list of tables", rows, f"Write [[{key}]] above each.").within(key)
    if len(rows) > TABLES_MAX:
        raise Invalid(f"{key}: {len(rows)} tables are too many", f"Use at most {TABLES_MAX}.")
    return tuple(read(row, f"{key}[{at}]", at) for at, row in enumerate(rows))


def _agent(table: object, where: str) -> AgentSettings:
    """What differs between agents here: whose account they draw on."""
    return AgentSettings(**values.read_all({"pool": values.name}, table, where))


def _project(table: object, where: str) -> Mapping[str, object]:
    """The keys of a project, as they are written: whoever makes it reads them again."""
    rows, name = values.section(table, where), where.partition(".")[2]
    for key in rows:
        if key not in house.PROJECT:
            raise values.unknown("key", f"{where}.{key}", house.PROJECT)
    try:
        with_values(Project(name), rows, DAY)
    except Invalid as error:
        message = error.message.removeprefix(f"project {name}: ")
        raise Invalid(f"{where}: {message}", error.hint) from None
    return rows


def _groups(table: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    """Groups, those above before those under them."""
    rows = _named(table, "groups", lambda row, _: values.section(row, ""))
    known: dict[str, Group] = {}
    for name, row in rows.items():
        known[name] = groups.joined(known, name, groups.read(name, row))
    return rows


def _refuse_unknown(workload: Workload) -> None:
    """Every name that is used must be there."""
    agents = Settings(agents=workload.agents).known_agents()
    pools = Settings(agents=workload.agents).known_pools()
    sources, projects = workload.sources, workload.projects
    for what, names in (
        ("source", [source.name for source in sources]),
        ("worker", [crew.name for crew in workload.crews]),
    ):
        for name in names if len(set(names)) < len(names) else ():
            if names.count(name) > 1:
                raise values.twice(name).within(what)
    used: list[tuple[str, str, object, Collection[str]]] = [
        ("workload", "agent", workload.agent, agents),
        *(
            (f"projects.{name}", "agent", row.get("agent"), agents)
            for name, row in projects.items()
        ),
        *(("pools", "pool", name, pools) for name in workload.limits),
    ]
    for source in sources:
        for row in (source.fields, *(step.fields for step in source.steps)):
            used += [
                (f"source {source.name}", "project", row.get("project"), projects),
                (f"source {source.name}", "agent", row.get("agent"), agents),
                (f"source {source.name}", "pool", row.get("pool"), pools),
            ]
    for where, what, word, known in used:
        if word is not None and word not in known:
            raise Invalid(f"{where}: there is no {what} {word!r}", did_you_mean(str(word), known))


def _projects(
    written: Mapping[str, Mapping[str, object]], sources: Iterable[Source]
) -> dict[str, Mapping[str, object]]:
    """The projects of the file, and `default` where tasks name none."""
    nameless = any(
        "project" not in {**source.fields, **row}
        for source in sources
        for row in (*(step.fields for step in source.steps), *(() if source.steps else ({},)))
    )
    return {**({DEFAULT_PROJECT: {}} if nameless else {}), **written}
