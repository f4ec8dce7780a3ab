"""Settings: where things are. `fairlane.toml` in the home folder; every key is optional."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import SECOND, Micros, parse_duration
from fairlane.model.record import dataclass
from fairlane.model.shipped import POOLS, SHIPPED

FILE = "fairlane.toml"
#: A settings file is a page; one beyond this size is not one.
FILE_BYTES_MAX = 1_000_000
#: Of one attempt's log; the rest is dropped, and this is said in it.
LOG_BYTES_MAX = 64 * 1024 * 1024

PERMISSIONS = ("read", "edit", "full")
MODES = ("worktree", "pool", "shared")
COMMITS = ("rest", "none")
LEVELS = ("debug", "info", "warning", "error")
NOTICES = ("parked", "budget_warning", "cooldown", "group_done", "queue_empty")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where everything is kept."""

    url: str | None = None  # sqlite:PATH; None: a file in the home folder


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The worker of this machine."""

    name: str
    slots: int | None = None  # None: as many as cap `all` lets run, 4 without one
    labels: tuple[str, ...] = ()
    executor: str = "process"


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What a file says of one agent; what is absent is as shipped."""

    argv: tuple[str, ...] | None = None
    parser: str | None = None
    pool: str | None = None
    permissions: str | None = None
    model: str | None = None
    stop: tuple[Micros, ...] | None = None  # after the interrupt, after the terminate
    grace: Micros | None = None  # after its final record
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What selects an account."""

    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """Where attempts work."""

    mode: str = "worktree"
    commit: str = "rest"
    folder: str | None = None  # None: under the home folder


@dataclass(frozen=True, slots=True)
class NotifyRule:
    """Who is told of what."""

    on: tuple[str, ...] = NOTICES
    command: tuple[str, ...] | None = None
    url: str | None = None
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SourceRule:
    """Where work comes from by itself."""

    type: str
    path: str | None = None
    command: tuple[str, ...] | None = None
    every: Micros = 60 * SECOND
    write_back: bool = False
    project: str | None = None


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where the daemon listens."""

    host: str = "127.0.0.1"
    port: int = 7117
    page: bool = True


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How much is said, and what is never said."""

    level: str = "info"
    max_bytes: int = LOG_BYTES_MAX
    mask: tuple[str, ...] = ()  # patterns beside the built-in ones


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, validated once."""

    agent: str | None = None  # for tasks whose project names none
    store: StoreSettings = field(default_factory=StoreSettings)
    worker: WorkerSettings = field(default_factory=lambda: WorkerSettings(host_name()))
    agents: Mapping[str, AgentSettings] = field(default_factory=dict)
    pools: Mapping[str, PoolSettings] = field(default_factory=dict)
    workspaces: WorkspaceSettings = field(default_factory=WorkspaceSettings)
    notify: tuple[NotifyRule, ...] = ()
    source: tuple[SourceRule, ...] = ()
    server: ServerSettings = field(default_factory=ServerSettings)
    log: LogSettings = field(default_factory=LogSettings)

    @classmethod
    def load(cls, path: Path) -> Settings:
        """The settings of a file; a file that is not there sets nothing."""
        text = _read_text(path)
        if text is None:
            return cls()
        try:
            table = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            hint = 'Settings are lines such as worker.slots = 4; text needs quotes: name = "box".'
            raise Invalid(f"{path}: not TOML: {error}", hint, code="invalid_settings") from error
        return cls.parse(table, str(path))

    @classmethod
    def parse(cls, table: Mapping[str, Any], origin: str = FILE) -> Settings:
        """The settings that a table describes; `origin` names it in errors."""
        known = (*_TABLES, *_NAMED, *_LISTS, "agent")
        for key in table:
            if key not in known:
                raise _error(origin, f"unknown key {key}", did_you_mean(key, known))
        held: dict[str, Any] = {}
        if "agent" in table:
            held["agent"] = _value(origin, "agent", table["agent"], _text)
        for name, (kind, readers) in _TABLES.items():
            values = _section(origin, name, table.get(name, {}), readers)
            if name == "worker":
                values.setdefault("name", host_name())
            held[name] = kind(**values)
        for name, (kind, readers) in _NAMED.items():
            each = _table(origin, name, table.get(name, {}))
            held[name] = {
                key: kind(**_section(origin, f"{name}.{key}", value, readers))
                for key, value in each.items()
            }
        for name, read in _LISTS.items():
            held[name] = tuple(read(origin, name, table.get(name, [])))
        return cls(**held)

    def agent_pool(self, name: str | None) -> str | None:
        """The pool whose limits an agent shares; None: it draws on none."""
        if name is None:
            return None
        own = self.agents.get(name)
        return own.pool if own is not None and own.pool is not None else POOLS.get(name)

    def known_agents(self) -> tuple[str, ...]:
        """The shipped agents and those of the file, by name."""
        return tuple(sorted({*SHIPPED, *self.agents}))

    def known_pools(self) -> tuple[str, ...]:
        """Every pool that an agent or the file names, by name."""
        named = {self.agent_pool(name) for name in self.known_agents()} | set(self.pools)
        return tuple(sorted(name for name in named if name is not None))


def host_name() -> str:
    """This machine's name."""
    return os.uname().nodename


class _NotAccepted(ValueError):
    """The text says what is accepted."""


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise _NotAccepted("one line of text")
    return value


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _NotAccepted('a list of text such as ["a", "b"]')
    for each in value:
        if not isinstance(each, str) or not each:
            raise _NotAccepted('a list of text such as ["a", "b"]')
    return tuple(value)


def _command(value: object) -> tuple[str, ...]:
    words = _words(value)
    if not words:
        raise _NotAccepted('a program with its arguments such as ["notify-send", "Fairlane"]')
    return words


def _patterns(value: object) -> tuple[str, ...]:
    words = _words(value)
    for each in words:
        try:
            re.compile(each)
        except re.error as error:
            raise _NotAccepted(f"a list of regular expressions ({each}: {error})") from error
    return words


def _env(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise _NotAccepted('names with text such as { CLAUDE_CONFIG_DIR = "~/.claude-2" }')
    return dict(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _NotAccepted("true or false")
    return value


def _length(value: object) -> Micros:
    try:
        return parse_duration(value)  # type: ignore[arg-type]
    except Invalid as error:
        raise _NotAccepted("a duration such as 30s or 5m") from error


def _lengths(value: object) -> tuple[Micros, ...]:
    if not isinstance(value, list):
        return (_length(value), _length(value))
    if len(value) != 2:
        raise _NotAccepted('two durations such as ["10s", "5s"]')
    return tuple(_length(each) for each in value)


def _count(least: int, most: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value <= most:  # type: ignore[operator]
            raise _NotAccepted(f"a whole number from {least} to {most}")
        return int(value)  # type: ignore[call-overload,no-any-return]

    return read


def _choice(words: tuple[str, ...]) -> Callable[[object], str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise _NotAccepted("one of " + ", ".join(words))
        return value

    return read


def _some(words: tuple[str, ...]) -> Callable[[object], tuple[str, ...]]:
    def read(value: object) -> tuple[str, ...]:
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not found or not set(found) <= set(words):
            raise _NotAccepted("some of " + ", ".join(words))
        return tuple(found)

    return read


Readers = Mapping[str, Callable[[object], Any]]

_TABLES: dict[str, tuple[Callable[..., Any], Readers]] = {
    "store": (StoreSettings, {"url": _text}),
    "worker": (
        WorkerSettings,
        {"name": _text, "slots": _count(0, 10**6), "labels": _words, "executor": _text},
    ),
    "workspaces": (
        WorkspaceSettings,
        {"mode": _choice(MODES), "commit": _choice(COMMITS), "folder": _text},
    ),
    "server": (ServerSettings, {"host": _text, "port": _count(0, 65535), "page": _flag}),
    "log": (
        LogSettings,
        {"level": _choice(LEVELS), "max_bytes": _count(0, 10**15), "mask": _patterns},
    ),
}
_NAMED: dict[str, tuple[Callable[..., Any], Readers]] = {
    "agents": (
        AgentSettings,
        {
            "argv": _command,
            "parser": _text,
            "pool": _text,
            "model": _text,
            "env": _env,
            "permissions": _choice(PERMISSIONS),
            "stop": _lengths,
            "grace": _length,
        },
    ),
    "pools": (PoolSettings, {"env": _env}),
}
_NOTIFY: Readers = {"on": _some(NOTICES), "command": _command, "url": _text, "secret": _text}
_SOURCE: Readers = {"type": _text, "path": _text, "command": _command, "project": _text} | {
    "every": _length,
    "write_back": _flag,
}


def _notify(origin: str, name: str, value: object) -> list[NotifyRule]:
    rules = []
    for where, table in _each(origin, name, value):
        rule = NotifyRule(**_section(origin, where, table, _NOTIFY))
        if (rule.command is None) == (rule.url is None):
            raise _error(origin, f"{where} needs a command or a url, and not both", "Keep one.")
        rules.append(rule)
    return rules


def _source(origin: str, name: str, value: object) -> list[SourceRule]:
    rules = []
    for where, table in _each(origin, name, value):
        values = _section(origin, where, table, _SOURCE)
        if "type" not in values:
            raise _error(origin, f"{where} has no type", 'Add type = "jsonl".')
        if ("path" in values) == ("command" in values):
            raise _error(origin, f"{where} needs a path or a command, and not both", "Keep one.")
        rules.append(SourceRule(**values))
    return rules


_LISTS: dict[str, Callable[[str, str, object], list[Any]]] = {"notify": _notify, "source": _source}


def _section(origin: str, where: str, table: object, readers: Readers) -> dict[str, Any]:
    """The typed values of one table."""
    held = {}
    for key, value in _table(origin, where, table).items():
        if key not in readers:
            raise _error(origin, f"unknown key {where}.{key}", did_you_mean(key, readers))
        held[key] = _value(origin, f"{where}.{key}", value, readers[key])
    return held


def _value(origin: str, key: str, value: object, read: Callable[[object], Any]) -> Any:
    try:
        return read(value)
    except _NotAccepted as accepted:
        shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:59] + "…"
        if key.endswith(("secret", ".env")):
            shown = "what is given"
        hint = f"Change {key}; nothing of this file is used."
        raise _error(origin, f"{key} = {shown} is refused: accepted is {accepted}", hint) from None


def _table(origin: str, where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _error(origin, f"{where} is no table", f"Write [{where}] above its keys.")
    return value


def _each(origin: str, name: str, value: object) -> list[tuple[str, object]]:
    if not isinstance(value, list):
        raise _error(origin, f"{name} is no list of tables", f"Write [[{name}]] above each.")
    return [(f"{name}[{at}]", table) for at, table in enumerate(value)]


def _error(origin: str, what: str, hint: str) -> Invalid:
    return Invalid(f"{origin}: {what}", hint, code="invalid_settings")


def _read_text(path: Path) -> str | None:
    try:
        data = path.read_bytes()
        if len(data) > FILE_BYTES_MAX:
            raise _error(str(path), f"{len(data)} bytes are no settings", "It is a page of TOML.")
        return data.decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        hint = "Make it a readable TOML file, or remove it: every setting has a default."
        raise _error(str(path), f"cannot be read: {why}", hint) from error
