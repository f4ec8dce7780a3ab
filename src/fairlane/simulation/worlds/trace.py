"""Traces: what happened, one JSON object a line; read strictly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from operator import attrgetter
from pathlib import Path

from fairlane.careful_files import read_file
from fairlane.intake import fields
from fairlane.model import values
from fairlane.model.amounts import DOLLARS_MAX, TOKENS_MAX
from fairlane.model.errors import FairlaneError, Invalid
from fairlane.model.instant import SECOND, Micros
from fairlane.model.record import dataclass, field
from fairlane.model.task import Outcome, Task, agent_of
from fairlane.model.values import Reader, Values
from fairlane.policy.schema import COUNTERS
from fairlane.simulation.world import ATTEMPTS_MAX, DAYS_MAX, Act, Arrival, Fate, Shift
from fairlane.simulation.worlds.file import ground as file_ground
from fairlane.simulation.worlds.file import house
from fairlane.simulation.worlds.file.added import TASK
from fairlane.simulation.worlds.file.ground import Names, names_of, read_ground, refuse_unknown
from fairlane.simulation.worlds.file.moments import Calendar, begin
from fairlane.simulation.worlds.file.tables import known_keys
from fairlane.simulation.worlds.ground import TASKS_MAX, Ground, too_many
from fairlane.simulation.worlds.profile import LASTS_MAX
from fairlane.simulation.worlds.recorded import Recorded, Try
from fairlane.simulation.worlds.samples import DRAWN, Place

#: What the first line says of the format.
VERSION = 1
#: A trace has a line for each attempt; beyond this size it is refused.
FILE_BYTES_MAX = 512_000_000
#: Longest line.
LINE_MAX = 1_000_000
#: The fields of a task in a trace.
FIELDS = frozenset({*TASK, "id", "needs", "parent", "not_before"})
CODE = "invalid_trace"
_decode = json.JSONDecoder(parse_float=Decimal, object_pairs_hook=values.once).decode
_HINT = 'A trace is one JSON object a line, such as {"attempt": "t1", "number": 1, "seconds": 60}.'


@dataclass(slots=True)
class _Lines:
    """What was read so far; after the first line the ground is known."""

    calendar: Calendar
    days: int | None
    ground: Ground
    names: Names
    of_attempts: Mapping[str, Reader[object]]
    arrived: list[Arrival] = field(default_factory=list)
    fates: dict[Try, Fate] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    came: list[Shift] = field(default_factory=list)
    done: list[Act] = field(default_factory=list)

    def world(self) -> Recorded:
        """The whole trace; lines of one sort may be in any order."""
        by_time = attrgetter("at")
        return Recorded(
            begin=self.calendar.begin,
            days=self.days,
            ground=self.ground,
            arrived=tuple(sorted(self.arrived, key=by_time)),
            fates=self.fates,
            places=self.places,
            came=tuple(sorted(self.came, key=by_time)),
            done=tuple(sorted(self.done, key=by_time)),
        )

    def arrival(self, record: Mapping[str, object]) -> None:
        """`arrival`: when, and the `tasks` with their fields."""
        given = values.read_all(
            {
                "arrival": self.calendar.moment,
                "tasks": lambda rows: values.entries(rows, TASKS_MAX),
            },
            record,
        )
        _need(given, "arrival", "tasks")
        rows = tuple(self._task(row) for row in given["tasks"])
        self.arrived.append(Arrival(given["arrival"], rows))
        if len(self.places) > TASKS_MAX:
            raise too_many(len(self.places))

    def _task(self, record: object) -> Mapping[str, object]:
        row = values.section(record, "tasks")
        for key in row:
            if key not in FIELDS:
                raise values.unknown("field", key, FIELDS)
        task = fields.read(row)
        refuse_unknown(self.names, "task", row)
        if "id" not in task:
            raise Invalid("a task without id", 'Add "id": "t1".')
        if task["id"] in self.places:
            raise values.twice(task["id"])
        project = task.get("project", _BLANK.project)
        usual = self.ground.agent_of(project)
        agent = agent_of(task.get("agent"), usual, None, False)
        self.places[task["id"]] = Place(project, task.get("kind", _BLANK.kind), agent)
        return row

    def attempt(self, record: Mapping[str, object]) -> None:
        """`attempt`: of which task, its `number`, and what came of it."""
        given = values.read_all(self.of_attempts, record)
        _need(given, "attempt", "number", "seconds")
        name = given["attempt"], given["number"]
        if name in self.fates:
            raise Invalid(f"attempt {name[1]} of {name[0]} appears twice", "Take one out.")
        if len(self.fates) >= ATTEMPTS_MAX:
            raise Invalid("too many attempts", f"Use at most {ATTEMPTS_MAX:,}.")
        self.fates[name] = Fate(
            given["seconds"],
            Outcome(given.get("outcome", Outcome.SUCCEEDED)),
            given.get("tokens", (0, 0, 0, 0)),
            given.get("usd"),
            retry_after=given.get("retry_after"),
            resets_at=given.get("resets_at"),
            reports=given.get("reports", 0),
        )

    def worker(self, record: Mapping[str, object]) -> None:
        """`worker`: it comes, or with `slots` 0 it leaves."""
        given = values.read_all(
            {
                "worker": values.line,
                "at": self.calendar.moment,
                "slots": values.whole(0, 10**6),
                "labels": values.several(fields.label),
                "sudden": values.flag,
            },
            record,
        )
        _need(given, "worker", "at")
        given["worker"], at = given.pop("worker"), given.pop("at")
        self.came.append(Shift(at, **given))

    def act(self, record: Mapping[str, object]) -> None:
        """`act`: what a person did, with the arguments of the operation."""
        row = dict(record)
        row["do"] = row.pop("act")
        self.done.append(house.act(self.calendar, row, "act"))


_BLANK = Task("")
_SORTS: Mapping[str, Callable[[_Lines, Mapping[str, object]], None]] = {
    "arrival": _Lines.arrival,
    "attempt": _Lines.attempt,
    "worker": _Lines.worker,
    "act": _Lines.act,
}


def load_trace(path: str | Path) -> Recorded:
    """The trace in a file."""
    try:
        data = read_file(path, FILE_BYTES_MAX)
    except FileNotFoundError as error:
        raise Invalid(f"{path}: there is no such file", "Give the path of a trace.") from error
    except OSError as error:
        raise Invalid(f"{path}: cannot be read: {error.strerror}") from error
    return read_trace(data.split(b"\n"), str(path))


def read_trace(lines: Iterable[str | bytes], origin: str = "trace") -> Recorded:
    """The trace in some lines; a line that is refused is named by its number."""
    read: _Lines | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = _parsed(line)
            if read is None:
                read = _first(record)
            else:
                _sort_of(record)(read, record)
        except FairlaneError as error:
            raise Invalid(f"{origin}:{number}: {error.message}", error.hint, CODE) from None
    if read is None:
        raise Invalid(f"{origin}: an empty trace", 'Its first line is {"trace": 1, …}.', CODE)
    return read.world()


def _parsed(line: str | bytes) -> Mapping[str, object]:
    if len(line) > LINE_MAX:
        raise Invalid(f"a line of {len(line)} bytes", f"Use at most {LINE_MAX:,}.")
    try:
        text = line.decode() if isinstance(line, bytes) else line
        record = _decode(text)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise Invalid(f"not JSON: {error}", _HINT) from None
    if not isinstance(record, dict):
        raise values.wrong("a JSON object", record, _HINT)
    return record


def _first(record: Mapping[str, object]) -> _Lines:
    """The first line: the version, the begin, and what is there at the begin."""
    readers: Mapping[str, Reader[object]] = {
        "trace": values.whole(VERSION, VERSION),
        "begin": begin,
        "days": values.whole(1, DAYS_MAX),
    }
    known_keys(record, (*readers, *file_ground.KEYS))
    given = values.read_all(readers, {key: record.get(key) for key in readers})
    for key in ("trace", "begin"):
        if key not in given:
            hint = 'It begins with {"trace": 1, "begin": "2026-01-05T00:00:00Z"}.'
            raise Invalid(f"the first line has no {key}", hint)
    calendar = Calendar(given["begin"], {})
    ground = read_ground(calendar, record)
    days, of_attempts = given.get("days"), _attempt_readers(calendar)
    return _Lines(calendar, days, ground, names_of(ground), of_attempts)


def _sort_of(
    record: Mapping[str, object],
) -> Callable[[_Lines, Mapping[str, object]], None]:
    for sort, read in _SORTS.items():
        if sort in record:
            return read
    raise Invalid("neither an arrival nor an attempt, a worker or an act", _HINT)


def _need(given: Values, *keys: str) -> None:
    for key in keys:
        if key not in given:
            raise Invalid(f"{key} is missing", _HINT)


def _attempt_readers(calendar: Calendar) -> Mapping[str, Reader[object]]:
    return {
        "attempt": values.name,
        "number": values.whole(1, 10**6),
        "at": calendar.moment,
        "seconds": _seconds,
        "outcome": values.choice(tuple(sorted(map(str, DRAWN)))),
        "tokens": _tokens,
        "usd": values.dollars(DOLLARS_MAX),
        "retry_after": _seconds,
        "resets_at": values.moment,
        "reports": values.whole(0, 1000),
    }


def _seconds(value: object) -> Micros:
    """Seconds, exact to a millionth."""
    micros = values.ratio(0, LASTS_MAX // SECOND)(value) * SECOND
    return micros.numerator


def _tokens(value: object) -> tuple[int, ...]:
    """Tokens by counter; a bare number is output."""
    read = values.whole(0, TOKENS_MAX)
    if not isinstance(value, Mapping):
        return (0, read(value), 0, 0)
    given = values.read_all(dict.fromkeys(COUNTERS, read), value)
    return tuple(given.get(counter, 0) for counter in COUNTERS)
