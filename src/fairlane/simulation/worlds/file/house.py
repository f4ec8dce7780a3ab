"""What else a workload file has: accounts with limits, workers, what people do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlane.intake.fields import label
from fairlane.model import values
from fairlane.model.errors import Invalid
from fairlane.model.instant import MINUTE
from fairlane.model.task import Outcome
from fairlane.model.values import Reader, Values
from fairlane.service.operations.call import fitting
from fairlane.service.operations.table import OPERATIONS
from fairlane.simulation.provider import Limits, Outage, Quota
from fairlane.simulation.world import Act
from fairlane.simulation.worlds.described import Crew
from fairlane.simulation.worlds.file.moments import Calendar
from fairlane.simulation.worlds.file.tables import known_keys

#: Most quotas and outages of a pool, and most crashes of a worker.
LISTED_MAX = 1000
#: The keys of a project that a simulation knows; the others are about repositories.
PROJECT = ("weight", "max_in_flight", "budgets", "status", "agent", "workspaces")
#: What people do in a simulation.
ACTS = ("pause", "resume", "cancel", "retry", "edit", "project_set", "group_set")
#: How attempts of a pool end while it is away.
_OUTAGES = tuple(
    map(str, (Outcome.THROTTLED, Outcome.FAILED, Outcome.LAUNCH_FAILED, Outcome.ENVIRONMENT))
)


def limits(calendar: Calendar, table: object, where: str) -> Limits:
    """What one pool may use, and when it is away."""

    def all_of(read: Callable[[object, str], object], key: str) -> Reader[object]:
        return lambda rows: tuple(
            read(row, f"{where}.{key}[{at}]")
            for at, row in enumerate(values.entries(rows, LISTED_MAX))
        )

    known = {
        "quota": _quota,
        "outage": lambda row, place: _outage(calendar, row, place),
    }
    given: Values = {}
    section = values.section(table, where)
    known_keys(section, known, where)
    for key, rows in section.items():
        given[key] = all_of(known[key], key)(rows)
    return Limits(given.get("quota", ()), given.get("outage", ()))


def _quota(table: object, where: str) -> Quota:
    given = values.read_all(
        {
            "window": values.positive_duration,
            "requests": values.whole(1),
            "tokens": values.whole(1),
            "resets": values.flag,
        },
        table,
        where,
    )
    if "window" not in given:
        raise Invalid(f"{where} has no window", 'Add window = "1m".')
    if "requests" not in given and "tokens" not in given:
        raise Invalid(f"{where} has neither requests nor tokens", "Add one.")
    return Quota(**given)


def _outage(calendar: Calendar, table: object, where: str) -> Outage:
    given = values.read_all(
        {
            "from": calendar.moment,
            "until": calendar.moment,
            "outcome": values.choice(_OUTAGES),
            "retry_after": values.duration,
        },
        table,
        where,
    )
    begin, end = _both(given, where)
    outcome = Outcome(given.get("outcome", Outcome.THROTTLED))
    return Outage(begin, end, outcome, given.get("retry_after", MINUTE))


def _both(given: Values, where: str) -> tuple[int, int]:
    for key in ("from", "until"):
        if key not in given:
            raise Invalid(f"{where} has no {key}", f'Add {key} = "1d9h".')
    if given["until"] <= given["from"]:
        raise Invalid(f"{where}: until is not after from", "Swap them.")
    return given["from"], given["until"]


def worker(calendar: Calendar, table: object, where: str) -> Crew:
    """A worker with its hours."""
    readers: Mapping[str, Reader[object]] = {
        "name": values.line,
        "slots": values.whole(1, 10**6),
        "labels": values.several(label),
        "from": calendar.moment,
        "until": calendar.moment,
        "hours": calendar.open,
        "sudden": values.flag,
        "crashes": lambda rows: tuple(
            sorted(calendar.moment(row) for row in values.entries(rows, LISTED_MAX))
        ),
        "back_after": values.positive_duration,
    }
    given = values.read_all(readers, table, where)
    if "name" not in given:
        raise Invalid(f"{where} has no name", 'Add name = "box1".')
    given["begin"], given["end"] = given.pop("from", None), given.pop("until", None)
    given.setdefault("back_after", 10 * MINUTE)
    return Crew(**given)


def act(calendar: Calendar, table: object, where: str) -> Act:
    """What a person does: `at`, `do`, and the arguments of that operation."""
    rest = dict(values.section(table, where))
    given = values.read_all(
        {"at": calendar.moment, "do": values.choice(ACTS)},
        {key: rest.pop(key) for key in ("at", "do") if key in rest},
        where,
    )
    for key, written in (("at", 'at = "1d9h"'), ("do", 'do = "pause"')):
        if key not in given:
            raise Invalid(f"{where} has no {key}", f"Add {written}.")
    operation = OPERATIONS[given["do"]]
    try:
        arguments = fitting(operation, rest)
    except Invalid as error:
        raise error.within(where) from None
    changes = arguments.get("values") if operation.name == "project_set" else {}
    assert isinstance(changes, Mapping)
    known_keys(changes, PROJECT, f"{where}.values")
    return Act(given["at"], operation.name, arguments)
