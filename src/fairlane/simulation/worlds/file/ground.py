"""What is there before anybody adds work: `agents`, `projects`, `groups`, `pools`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from fairlane.intake.routing import DEFAULT_PROJECT
from fairlane.model import values
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import DAY
from fairlane.model.project import Group, Project
from fairlane.service import groups
from fairlane.service.projects import with_values
from fairlane.settings import AgentSettings, Settings
from fairlane.simulation.worlds.file import house
from fairlane.simulation.worlds.file.moments import Calendar
from fairlane.simulation.worlds.file.tables import known_keys, named
from fairlane.simulation.worlds.ground import Ground

#: The command of agents: a lease names one, and a simulation starts no process.
_NEVER_RUN = ("simulated",)
#: What there is of each sort.
Names: TypeAlias = Mapping[str, Collection[str]]
#: The keys of a file that make it.
KEYS = ("agent", "agents", "projects", "groups", "pools")


def read_ground(calendar: Calendar, table: Mapping[str, object]) -> Ground:
    """The ground that these keys of a table describe."""
    given = values.read_all({"agent": values.name}, {"agent": table.get("agent")})
    ground = Ground(
        agent=given.get("agent"),
        agents=named(table, "agents", _agent),
        projects=named(table, "projects", _project),
        groups=_groups(table),
        limits=named(table, "pools", lambda row, where: house.limits(calendar, row, where)),
    )
    known = names_of(ground)
    refuse_unknown(known, "agent", {"agent": ground.agent})
    for name, row in ground.projects.items():
        refuse_unknown(known, f"projects.{name}", {"agent": row.get("agent")})
    for name in ground.limits:
        refuse_unknown(known, "pools", {"pool": name})
    return ground


def names_of(ground: Ground) -> Names:
    """The names that records can use."""
    settings = Settings(agents=ground.agents)
    return {
        "project": ground.projects.keys() | {DEFAULT_PROJECT},
        "agent": settings.known_agents(),
        "pool": settings.known_pools(),
    }


def refuse_unknown(known: Names, where: str, record: Mapping[str, object]) -> None:
    """A record must name projects, agents and pools that are there."""
    for what, names in known.items():
        name = record.get(what)
        if name is not None and name not in names:
            hint = did_you_mean(str(name), names)
            raise Invalid(f"{where}: there is no {what} {name!r}", hint)


def _agent(table: object, where: str) -> AgentSettings:
    """What differs between agents in a simulation: the account that they use."""
    return AgentSettings(_NEVER_RUN, **values.read_all({"pool": values.name}, table, where))


def _project(table: object, where: str) -> Mapping[str, object]:
    """The keys of a project, as they are written: they are read again where it is made."""
    rows, name = values.section(table, where), where.partition(".")[2]
    known_keys(rows, house.PROJECT, where)
    try:
        with_values(Project(name), rows, DAY)
    except Invalid as error:
        message = error.message.removeprefix(f"project {name}: ")
        raise Invalid(f"{where}: {message}", error.hint) from None
    return rows


def _groups(table: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    """Groups; a parent comes before the groups under it."""
    rows = named(table, "groups", values.section)
    known: dict[str, Group] = {}
    for name, row in rows.items():
        known[name] = groups.joined(known, name, groups.read(name, row))
    return rows
