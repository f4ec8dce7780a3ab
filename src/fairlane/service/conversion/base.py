"""Read another scheduler's files as keys; what they amount to here, also as commented TOML."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from itertools import islice
from pathlib import Path
from typing import TypeVar

from fairlane.intake import files
from fairlane.intake.naming import marked, name_for
from fairlane.intake.sources.base import LeftOut
from fairlane.model.errors import Invalid, listed
from fairlane.model.instant import SECOND, Instant, show_duration
from fairlane.model.record import dataclass, field
from fairlane.model.task import Status
from fairlane.model.values import is_name, out_of_range, whole, wrong
from fairlane.policy import schema

T = TypeVar("T")
WHAT = "a file of that scheduler, or the folder that holds it"
NUMBER_MAX = 10**12
#: A file with more keys is no configuration; YAML can make many of few lines.
KEYS_MAX = 10_000
#: Most names in one note.
NAMED_MAX = 100
TITLE_MAX = 100
UNCHANGED = "Nothing was changed."


class Keys:
    """A nested document as dotted keys. `take` hands one out, typed; the rest is unknown."""

    def __init__(self, document: Mapping[str, object], origin: str) -> None:
        self.origin = origin
        self._left = dict(islice(_flat(document, ""), KEYS_MAX + 1))
        if len(self._left) > KEYS_MAX:
            raise Invalid(f"{origin}: more than {KEYS_MAX} keys", UNCHANGED)

    def take(self, key: str, read: Callable[[object], T]) -> T | None:
        """The value of a key; None where it is absent or null."""
        value = self._left.pop(key, None)
        if value is None:
            return None
        try:
            return read(value)
        except Invalid as error:
            hint = f"{error.hint} {UNCHANGED}".lstrip()
            raise Invalid(f"{self.origin}: {key}: {error.message}", hint) from None

    def peek(self, key: str) -> object:
        """The value of a key, which stays; None where it is absent."""
        return self._left.get(key)

    def take_all(self, prefix: str, read: Callable[[object], T]) -> dict[str, T]:
        """The values below a prefix, by the rest of their key."""
        names = [key for key in self._left if key.startswith(prefix)]
        values = {name[len(prefix) :]: self.take(name, read) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def drop(self, *keys: str) -> None:
        """What says nothing about scheduling, such as a file's version."""
        for key in keys:
            self._left.pop(key, None)

    def unknown(self) -> list[str]:
        """The keys that nobody took."""
        return list(self._left)


def _flat(document: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


count, signed = whole(0, NUMBER_MAX), whole(-NUMBER_MAX, NUMBER_MAX)


def number(value: object) -> float:
    """A number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong("a number", value)
    if not 0 <= value <= NUMBER_MAX:
        raise out_of_range(value, 0, NUMBER_MAX)
    return value


def span(unit: int) -> Callable[[object], str]:
    """A reader of lengths in a unit (in microseconds), as durations are written here."""

    def read(value: object) -> str:
        return show_duration(round(number(value) * unit) // 1000 * 1000)

    return read


SECONDS, MILLISECONDS, HOURS = span(SECOND), span(SECOND // 1000), span(3600 * SECOND)


def read_yaml(path: Path) -> Keys:
    """The keys of a YAML file."""
    import yaml

    from fairlane.intake.yaml_once import OnceLoader, problem_of

    text = files.read_text(path, WHAT)
    try:
        document = yaml.load(text, OnceLoader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Invalid(f"{path}: not YAML: {problem_of(error)}", UNCHANGED) from error
    return _keys(document, path)


def read_json(path: Path) -> Keys:
    """The keys of a JSON file."""
    return _keys(files.parse_json(files.read_text(path, WHAT), str(path), WHAT), path)


def _keys(document: object, path: Path) -> Keys:
    """An empty file has no keys; one that holds something else is not what was promised."""
    try:
        return Keys({} if document is None else table(document, str(path)), str(path))
    except RecursionError as error:  # YAML can hold itself
        raise Invalid(f"{path}: it holds itself", UNCHANGED) from error


def inside(path: Path, *names: str) -> list[Path]:
    """The file itself, or those of these names in a folder; a folder without any is refused."""
    if not path.is_dir():
        return [path]
    files_here = [path / name for name in names if (path / name).is_file()]
    if not files_here:
        raise Invalid(f"{path}: there is no {' or '.join(names)} in this folder", UNCHANGED)
    return files_here


def first_line(value: object) -> str:
    """The first line of a text, as a title; empty where it is none."""
    return value.strip().partition("\n")[0][:TITLE_MAX] if isinstance(value, str) else ""


def table(value: object, where: str) -> Mapping[str, object]:
    """A table of keys, of any names."""
    if not isinstance(value, Mapping):
        raise Invalid(f"{where}: not a table of keys", UNCHANGED)
    return value


def renamed(ids: Iterable[object], what: str, converted: Converted) -> dict[str, str]:
    """The ids that cannot be names here, each with the name that it gets; a note tells them."""
    texts = sorted({text for text in ids if isinstance(text, str) and text})
    taken = set(filter(is_name, texts))
    found: dict[str, str] = {}
    for text in texts:
        if not is_name(text):
            name = name_for(text)
            found[text] = marked(name, text) if name in taken else name
            taken.add(found[text])
    if found:
        pairs = listed([f"{text} is {name}" for text, name in found.items()], NAMED_MAX)
        converted.note(f"The name of a {what} has letters, digits, '.', '_' and '-' only: {pairs}.")
    return found


@dataclass(frozen=True, slots=True)
class Brought:
    """One task with its past: what a new task cannot have."""

    record: Mapping[str, object]  # the model's fields
    status: Status = Status.QUEUED  # queued, done, parked, canceled
    created_at: Instant | None = None  # None: now
    ended_at: Instant | None = None
    failures: int = 0
    begun: int = 0  # attempts that neither failed nor succeeded
    reason: str = ""  # why it is parked, paused or canceled
    where: str = ""  # the file and line, for messages
    artifacts: tuple[str, ...] = ()  # absolute paths that must exist before it starts
    paused: bool = False  # by itself


@dataclass(frozen=True, slots=True)
class Paused:
    """A scope in which nothing starts."""

    scope: str = "all"
    by: str = ""
    at: Instant | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """What one attempt used elsewhere, whatever became of its task."""

    project: str
    at: Instant
    tokens: int
    agent: str | None = None  # None: the project's


@dataclass(slots=True)
class Converted:
    """What follows from the files, and what does not."""

    preset: str | None = None  # None: they hold no rules, so those in force stay
    policy: dict[str, object] = field(default_factory=dict)  # plain keys: caps.kind:code
    budgets: list[dict[str, object]] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)  # agent
    called: dict[str, str] = field(default_factory=dict)  # key here -> what it is called there
    projects: dict[str, dict[str, object]] = field(default_factory=dict)
    pauses: list[Paused] = field(default_factory=list)
    tasks: list[Brought] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)
    skipped: list[LeftOut] = field(default_factory=list)  # work that cannot be brought over
    notes: list[str] = field(default_factory=list)  # what means something else now, and why
    unknown: list[str] = field(default_factory=list)  # keys without a counterpart

    def rule(self, key: str, value: object, called: str) -> None:
        """A key of the policy; nothing where the other side is silent."""
        if not (key + called).isprintable() or not _QUOTES.isdisjoint(key):
            raise wrong("a key of the rules", called, UNCHANGED)
        if value is not None:
            self.policy[key] = value
            self.called[key] = called

    def note(self, text: str) -> None:
        """Something that people should know."""
        self.notes.append(text)

    def note_a_zero(self) -> None:
        """Where the cap of all is 0: nothing starts, and how that is changed."""
        if self.policy.get("caps.all") == 0:
            self.note(
                f"{self.called['caps.all']} is 0, so nothing starts, as there. To start work: "
                "`fairlane policy set caps.all=1`."
            )

    def skip(self, name: object, reason: str, where: str) -> None:
        """Leave one piece of work out, by name; the rest comes in."""
        self.skipped.append(LeftOut(str(name), reason, where, bad=True))


#: What would end the name of a key in TOML, or begin something else in it.
_QUOTES = frozenset('"\\')
#: The column of the remarks.
_REMARK_AT = 34


def policy_text(converted: Converted, name: str) -> str:
    """`policy.toml`; nothing where the files hold no rules."""
    if converted.preset is None:
        return ""
    lines = [
        f"# Converted from {name}.",
        "# `fairlane policy show` prints every key with its value and where it came from.",
        f'preset = "{converted.preset}"',
        *_lines(converted.policy, converted.called),
    ]
    for budget in converted.budgets:
        lines += ["", "[[budget]]", *(f"{key} = {_toml(budget[key])}" for key in budget)]
    return "\n".join(lines) + "\n"


def settings_text(converted: Converted, name: str) -> str:
    """What `fairlane.toml` gets; nothing where nothing follows."""
    if not converted.settings:
        return ""
    lines = [f"# Converted from {name}.", *_lines(converted.settings, converted.called)]
    return "\n".join(lines) + "\n"


def _lines(values: Mapping[str, object], called: Mapping[str, str]) -> list[str]:
    lines = []
    for key, value in values.items():
        line = f"{schema.show_key(key)} = {_toml(value)}"
        lines.append(f"{line:{_REMARK_AT}} # {called[key]}" if key in called else line)
    return lines


def _toml(value: object) -> str:
    """A value as TOML has it: as JSON, without pairs of surrogates, and DEL is escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def merged(before: str, changes: Mapping[str, object]) -> str:
    """A settings file with some keys changed, or removed where the value is None.

    Everything else in it stays, comments too.
    """
    import tomlkit

    document = tomlkit.parse(before)
    for key, value in changes.items():
        table: MutableMapping[str, object] = document
        *tables, leaf = key.split(".")
        for name in tables:
            if name not in table:
                table[name] = tomlkit.table()
            inner = table[name]
            assert isinstance(inner, MutableMapping)
            table = inner
        if value is None:
            table.pop(leaf, None)
        else:
            table[leaf] = value
    return tomlkit.dumps(document)
