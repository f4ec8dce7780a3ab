"""Settings: where things are. `fairlane.toml` in the home folder; every key is optional."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TypeAlias

from fairlane.careful_files import read_file
from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND, Micros
from fairlane.model.record import dataclass, field
from fairlane.model.sandbox import (
    NO_SANDBOX,
    SANDBOX,
    SILENT,
    SandboxSettings,
    sandbox,
    sandboxes,
)
from fairlane.model.setting_values import patterns, secret, stop, variable, webhook
from fairlane.model.task import POOLS, SHIPPED
from fairlane.model.values import (
    Reader,
    Values,
    choice,
    duration,
    environment,
    flag,
    line,
    lines,
    named,
    positive_duration,
    program,
    read_all,
    section,
    several,
    some_of,
    unknown,
    whole,
    wrong,
)

FILE = "fairlane.toml"
#: A settings file is a page; one beyond this size is not one.
FILE_BYTES_MAX = 1_000_000
#: Size limit of one attempt's log; the log notes that the rest was dropped.
LOG_BYTES_MAX = 64 * 1024 * 1024

PERMISSIONS = ("read", "edit", "full")
MODES = ("worktree", "pool", "shared", "clone")
COMMITS = ("rest", "none")
LEVELS = ("debug", "info", "warning", "error")
#: Events of which a target is told if it names none, and those that it must name.
NOTICES = ("parked", "budget_warning", "cooldown", "group_done", "queue_empty")
MORE_NOTICES = ("done", "check_failed", "conflict")


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
    """The settings of one agent; absent keys have the shipped values."""

    argv: tuple[str, ...] | None = None
    parser: str | None = None
    pool: str | None = None
    permissions: str | None = None
    model: str | None = None
    stop: tuple[Micros, ...] | None = None  # after the interrupt, after the terminate
    grace: Micros | None = None  # after its final record
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    passes: tuple[str, ...] = ()  # key `pass`: names of variables of the daemon that it gets too
    sandbox: SandboxSettings | None = None


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What selects an account."""

    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    passes: tuple[str, ...] = ()  # key `pass`, as of an agent


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """Where attempts work."""

    mode: str = "worktree"
    commit: str = "rest"
    folder: str | None = None  # None: under the home folder
    setup_timeout: Micros = 10 * 60 * SECOND


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How checks run; everything else as their agent does."""

    timeout: Micros = 30 * 60 * SECOND
    sandbox: SandboxSettings | None = None  # None: as the agent's
    network: bool | None = None  # None: not in a sandbox
    env: tuple[str, ...] = ()  # names of variables that they get
    log_bytes: int = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class NotifyRule:
    """A notification: for which events, and how."""

    on: tuple[str, ...] = NOTICES
    command: tuple[str, ...] | None = None
    url: str | None = field(default=None, repr=False)  # http or https; parts of it are secret
    secret: str | None = field(default=None, repr=False)
    text: bool = False  # whether what an agent wrote is sent: its answer


@dataclass(frozen=True, slots=True)
class SourceRule:
    """A source that the daemon reads regularly."""

    type: str
    path: str | None = None
    command: tuple[str, ...] | None = None
    every: Micros = 60 * SECOND
    write_back: bool = False
    project: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)  # label -> kind of a task


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where the daemon listens."""

    host: str = "127.0.0.1"
    port: int = 7117
    page: bool = True


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The daemon's log level, the size of attempt logs, and secrets to mask."""

    level: str = "info"
    max_bytes: int = LOG_BYTES_MAX
    mask: tuple[str, ...] = ()  # patterns in addition to the built-in ones


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, validated once."""

    agent: str | None = None  # for tasks whose project names none
    store: StoreSettings = field(default_factory=StoreSettings)
    worker: WorkerSettings = field(default_factory=lambda: WorkerSettings(host_name()))
    agents: Mapping[str, AgentSettings] = field(default_factory=dict)
    pools: Mapping[str, PoolSettings] = field(default_factory=dict)
    workspaces: WorkspaceSettings = field(default_factory=WorkspaceSettings)
    checks: CheckSettings = field(default_factory=CheckSettings)
    notify: tuple[NotifyRule, ...] = ()
    source: tuple[SourceRule, ...] = ()
    server: ServerSettings = field(default_factory=ServerSettings)
    log: LogSettings = field(default_factory=LogSettings)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)

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
    def parse(cls, table: Mapping[str, object], origin: str = FILE) -> Settings:
        """The settings that a table describes; `origin` names it in errors."""
        try:
            settings = cls(**_values(table))
            for agent in (None, *settings.agents):
                for project in (None, *settings.sandbox.project):
                    settings.sandbox_for(agent, project)
            return settings
        except Invalid as error:
            raise error.within(origin, "invalid_settings") from None

    def agent_pool(self, name: str | None) -> str | None:
        """The pool whose limits an agent shares; None: it draws on none."""
        if name is None:
            return None
        own = self.agents.get(name)
        return own.pool if own is not None and own.pool is not None else POOLS.get(name)

    def sandbox_for(self, agent: str | None, project: str | None) -> SandboxSettings:
        """The sandbox of an attempt: key by key its project's, its agent's, or everybody's."""
        named = self.agents.get(agent or "")
        own = None if named is None else named.sandbox
        at = self.sandbox.project.get(project or "")
        whole = NO_SANDBOX
        for table in (self.sandbox, own, at):
            if table is not None and table != SILENT:
                whole = whole.over(table)
        if whole.kind != "bwrap" and whole.network is False:
            hint = 'Write kind = "bwrap", or network = true.'
            why = "landlock restricts files only, not the network"
            if whole.kind == "none":
                why = "without a sandbox network = false restricts nothing"
            raise Invalid(f"sandbox: {why}", hint)
        return whole

    def is_confined(self, agent: str | None, project: str | None) -> bool:
        """Whether an attempt sees only a part of this machine."""
        return self.sandbox_for(agent, project).kind != "none"

    def known_agents(self) -> tuple[str, ...]:
        """The shipped agents and those of the file, by name."""
        return tuple(sorted({*SHIPPED, *self.agents}))

    def known_pools(self) -> tuple[str, ...]:
        """Every pool that an agent or the file names, by name."""
        named = {self.agent_pool(name) for name in self.known_agents()} | set(self.pools)
        return tuple(sorted(name for name in named if name is not None))


#: Another name for this machine, where one process plays several of them; "": its own.
HOST: ContextVar[str] = ContextVar("host", default="")


def host_name() -> str:
    """This machine's name."""
    return HOST.get() or os.uname().nodename


Readers: TypeAlias = Mapping[str, Reader[object]]

_TABLES: dict[str, tuple[Callable[..., object], Readers]] = {
    "store": (StoreSettings, {"url": line}),
    "worker": (
        WorkerSettings,
        {"name": line, "slots": whole(0, 10**6), "labels": lines, "executor": line},
    ),
    "workspaces": (
        WorkspaceSettings,
        {
            "mode": choice(MODES),
            "commit": choice(COMMITS),
            "folder": line,
            "setup_timeout": positive_duration,
        },
    ),
    "checks": (
        CheckSettings,
        {
            "timeout": positive_duration,
            "sandbox": sandbox,
            "network": flag,
            "env": several(variable),
            "log_bytes": whole(0),
        },
    ),
    "server": (ServerSettings, {"host": line, "port": whole(0, 65535), "page": flag}),
    "sandbox": (SandboxSettings, {**SANDBOX, "project": sandboxes}),
    "log": (LogSettings, {"level": choice(LEVELS), "max_bytes": whole(0), "mask": patterns}),
}
_NAMED: dict[str, tuple[Callable[..., object], Readers]] = {
    "agents": (
        AgentSettings,
        {
            "argv": program,
            "parser": line,
            "pool": line,
            "model": line,
            "env": environment,
            "pass": several(variable),
            "permissions": choice(PERMISSIONS),
            "stop": stop,
            "grace": duration,
            "sandbox": sandbox,
        },
    ),
    "pools": (PoolSettings, {"env": environment, "pass": several(variable)}),
}
_LISTS: dict[str, tuple[Callable[..., object], Readers]] = {
    "notify": (
        NotifyRule,
        {
            "on": some_of((*NOTICES, *MORE_NOTICES)),
            "command": program,
            "url": webhook,
            "secret": secret,
            "text": flag,
        },
    ),
    "source": (
        SourceRule,
        {
            "type": line,
            "path": line,
            "command": program,
            "project": line,
            "every": duration,
            "write_back": flag,
            "kinds": named("kind"),
        },
    ),
}
#: Of each entry of a list, the two keys of which it has exactly one.
_EITHER = {"notify": ("command", "url"), "source": ("path", "command")}


def _rules(key: str, value: object) -> tuple[object, ...]:
    """The entries of a list of tables."""
    if not isinstance(value, list):
        raise wrong("a list of tables", value, f"Write [[{key}]] above each.").within(key)
    kind, readers = _LISTS[key]
    one, other = _EITHER[key]
    rules = []
    for at, table in enumerate(value):
        where = f"{key}[{at}]"
        values = read_all(readers, table, where)
        if key == "source" and "type" not in values:
            raise Invalid(f"{where} has no type", 'Add type = "jsonl".')
        if (one in values) == (other in values):
            hint = "Keep one." if one in values else f"Add {one} or {other}."
            raise Invalid(f"{where} needs a {one} or a {other}, and not both", hint)
        rules.append(kind(**values))
    return tuple(rules)


def _named(values: Values) -> Values:
    """Values by the names of their fields: `pass` is a word of Python."""
    return {"passes" if key == "pass" else key: value for key, value in values.items()}


def _values(table: Mapping[str, object]) -> Values:
    """The values of the whole file, section by section."""
    known = (*_TABLES, *_NAMED, *_LISTS, "agent")
    for key in table:
        if key not in known:
            raise unknown("key", key, known)
    values = read_all({"agent": line}, {"agent": table.get("agent")})
    for key, (kind, readers) in _TABLES.items():
        settings = read_all(readers, table.get(key, {}), key)
        if key == "worker":
            settings.setdefault("name", host_name())
        values[key] = kind(**settings)
    for key, (kind, readers) in _NAMED.items():
        values[key] = {
            name: kind(**_named(read_all(readers, entry, f"{key}.{name}")))
            for name, entry in section(table.get(key, {}), key).items()
        }
    return values | {key: _rules(key, table.get(key, [])) for key in _LISTS}


def _read_text(path: Path) -> str | None:
    try:
        return read_file(path, FILE_BYTES_MAX).decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        hint = "Make it a readable TOML file, or remove it: every setting has a default."
        raise Invalid(f"{path}: cannot be read: {why}", hint, "invalid_settings") from error
