"""Sources of a workload file: `[[source]]`, its steps, and the fields of the tasks it adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from fairlane.intake import fields
from fairlane.model import values
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import DAY, HOUR
from fairlane.model.values import Reader, Values
from fairlane.simulation.worlds.file.amounts import counts
from fairlane.simulation.worlds.file.moments import Calendar
from fairlane.simulation.worlds.sources import Source, Step

#: Most steps of a source, and most tasks of one step.
STEPS_MAX, COUNT_MAX = 100, 1000
#: Longest id of a task, and the part of it that arrivals and equal tasks need for their numbers.
ID_MAX, _NUMBERS = 128, len("-1000000.10000")
#: Most times that are written one by one.
TIMES_MAX = 10_000
#: The fields of a task that a simulation knows.
TASK = (
    "project", "kind", "title", "agent", "priority", "group", "parallel", "locks", "workspace",
    "pool", "labels", "estimate_tokens", "timeout", "max_attempts",
)  # fmt: skip
_FIELDS: Mapping[str, Reader[object]] = {name: fields.READERS[name] for name in TASK}
_RATES = {"per_hour": HOUR, "per_day": DAY}
#: Of these a source has exactly one.
PACES = ("at", "every", *_RATES)
_STEP: Mapping[str, Reader[object]] = {
    "name": values.name,
    "needs": values.names,
    "parent": values.name,
    "count": values.whole(1, COUNT_MAX),
    "work": values.name,
    **_FIELDS,
}


def read_source(calendar: Calendar, table: object, where: str, number: int) -> Source:
    """One source of work."""
    given = values.read_all(_readers(calendar), table, where)
    paces = [pace for pace in PACES if pace in given]
    if len(paces) != 1:
        hint = f"Give one of {', '.join(PACES)}."
        has = f"both {paces[0]} and {paces[1]}" if paces else f"none of {', '.join(PACES)}"
        raise Invalid(f"{where} has {has}", hint)
    if "steps" in given and "count" in given:
        raise Invalid(f"{where} has both steps and count", "Give each step its count.")
    if "at" in given and "hours" in given:
        raise Invalid(f"{where} has both at and hours", "Keep one.")
    if given.get("group_each") and "group" in given:
        raise Invalid(f"{where} has both group and group_each", "Keep one.")
    for rate in paces:
        if rate in _RATES:
            given["gap"] = max(1, int(_RATES[rate] / given.pop(rate)))
    assert isinstance(table, Mapping)
    optional = ("at", "every", "gap", "hours", "most", "count", "work")
    name, steps = given.get("name", f"s{number}"), _steps(given.get("steps", ()), where)
    if len(name) + max((len(step.name) for step in steps), default=0) + _NUMBERS > ID_MAX:
        hint = "Shorten the name of the source or of its steps."
        raise Invalid(f"{where}: its tasks would have ids of more than {ID_MAX} characters", hint)
    return Source(
        name=name,
        begin=given.get("from", calendar.begin),
        end=given.get("until"),
        fields=_raw(table),
        steps=steps,
        own_group=given.get("group_each", False),
        **{key: given[key] for key in optional if key in given},
    )


def _readers(calendar: Calendar) -> Mapping[str, Reader[object]]:
    return {
        "name": _source_name,
        "at": lambda value: tuple(
            sorted(calendar.moment(one) for one in values.entries(value, TIMES_MAX))
        ),
        "every": values.positive_duration,
        **dict.fromkeys(_RATES, _rate),
        "from": calendar.moment,
        "until": calendar.moment,
        "hours": calendar.open,
        "most": values.whole(1),
        "count": counts,
        "steps": lambda value: values.entries(value, STEPS_MAX),
        "group_each": values.flag,
        "work": values.name,
        **_FIELDS,
    }


def _source_name(value: object) -> str:
    name = values.name(value)
    if "." in name:
        raise values.wrong("the name of a source", value, "Use no '.': it comes before its steps.")
    return name


def _rate(value: object) -> Fraction:
    """How many arrivals on the average."""
    often: Fraction = values.ratio(0, 1_000_000)(value)
    if not often:
        raise Invalid("a rate of 0", "Give a rate above 0, or take the source out.")
    return often


def _raw(table: Mapping[str, object]) -> dict[str, object]:
    """The fields of tasks as they are written: whoever adds them reads them again."""
    return {key: value for key, value in table.items() if key in _FIELDS and value is not None}


def _steps(tables: Sequence[object], where: str) -> tuple[Step, ...]:
    """The steps of a source; each can only need those before it."""
    steps: dict[str, Step] = {}
    for at, table in enumerate(tables):
        place = f"{where}.steps[{at}]"
        step = _step(table, place)
        if step.name in steps:
            raise values.twice(step.name).within(place)
        for name in (*step.needs, *([step.parent] if step.parent else ())):
            if name not in steps:
                hint = did_you_mean(name, steps) or "The first step needs none."
                raise Invalid(f"{place}: no step before it is called {name!r}", hint)
        needed = sum(steps[name].count for name in step.needs)
        if needed > values.LIST_MAX:
            hint = f"Use at most {values.LIST_MAX:,}."
            raise Invalid(f"{place}: it needs {needed:,} tasks, which are too many", hint)
        if step.parent and steps[step.parent].count > 1:
            raise Invalid(f"{place}: {step.parent} are several tasks", "A parent is one task.")
        steps[step.name] = step
    for step in steps.values():
        before, _, number = step.name.rpartition("-")
        count = steps[before].count if before in steps and step.count == 1 else 1
        if count > 1 and number in map(str, range(1, count + 1)):
            raise Invalid(f"{where}: two tasks would be called {step.name}", "Rename a step.")
    return tuple(steps.values())


def _step(table: object, where: str) -> Step:
    given: Values = values.read_all(_STEP, table, where)
    if "name" not in given:
        raise Invalid(f"{where} has no name", 'Add name = "test".')
    assert isinstance(table, Mapping)
    relatives = {key: given[key] for key in ("needs", "parent", "count", "work") if key in given}
    return Step(given["name"], _raw(table), **relatives)
