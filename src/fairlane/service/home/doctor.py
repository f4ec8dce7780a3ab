"""Doctor: all that is wrong, and what would be recovered; nothing is changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fairlane.clock import Clock
from fairlane.engine.context import Context, is_here, slots_of
from fairlane.engine.liveness import state_of
from fairlane.executors.base import Ended, Running
from fairlane.executors.sandbox import machine, view
from fairlane.model.errors import FairlaneError, Invalid
from fairlane.model.instant import Instant, show_instant
from fairlane.model.names import SCHEMA, VERSION
from fairlane.model.project import Project, WorkerRow
from fairlane.model.sandbox import SandboxSettings
from fairlane.model.task import Attempt
from fairlane.policy import load
from fairlane.policy.policy import Policy
from fairlane.service.home import limits, old_home, sizes, store_traces, troubles, upkeep
from fairlane.service.home.setup import POLICY_FILE, installed
from fairlane.settings import FILE, Settings
from fairlane.store.base import Reading
from fairlane.store.sqlite.lock import holder_of, is_stopped, way_out, writers_without_log

if TYPE_CHECKING:
    from fairlane.model.documents.admin import DoctorAnswer, FindingDocument

WRONG, NOTE, FINE = "wrong", "note", "fine"
#: What helps where the newest transactions are gone.
LOST_LOG = "What was added last may be missing: see `fairlane list`, and add it again."
#: Less room than this stops work; less than that is worth a word.
DISK_BYTES_MIN, DISK_BYTES_LOW = 100 << 20, 1 << 30


class Finding(NamedTuple):
    """One thing that was looked at."""

    level: str  # wrong: somebody must act; note: worth knowing; fine
    what: str
    message: str
    hint: str = ""

    def document(self) -> FindingDocument:
        """As `doctor` shows it."""
        level, what, message, hint = self
        return {"level": level, "what": what, "message": message, "hint": hint}


def examine(
    home: Path,
    db: str | None,
    default_url: str,
    clock: Clock,
    former: Path | None = None,
    daemon: Mapping[str, object] | None = None,
) -> DoctorAnswer:
    """Look at everything; `ok` is false when something is wrong. `daemon`: who has the lock."""
    findings = [*_home(home), *_old_home(home, former)]
    settings = Settings()
    try:
        settings = Settings.load(home / FILE)
        findings.append(Finding(FINE, "settings", _file(home / FILE)))
    except FairlaneError as error:
        findings.append(_error("settings", error))
    findings += _policy(home / POLICY_FILE)
    findings += _start(home, settings, daemon)
    findings += _disk(home)
    url = db or settings.store.url or default_url
    findings += [*_sandbox(settings, home), *_shown_store(home, settings, url)]
    findings += _open_files(home, settings) if daemon is None else []
    findings += _store(home, url, settings, clock, daemon)
    return {
        "schema": SCHEMA,
        "ok": all(finding.level != WRONG for finding in findings),
        "home": str(home),
        "findings": [finding.document() for finding in findings],
    }


def _home(home: Path) -> Iterator[Finding]:
    if not home.is_dir():
        hint = "`fairlane init` makes it; so does the first task."
        yield Finding(NOTE, "home", f"{home} is not there yet", hint)
        return
    mode = home.stat().st_mode & 0o777
    if mode & 0o077:
        text = f"{home} can be read by others (mode {mode:03o})"
        yield Finding(WRONG, "home", text, f"chmod 700 {home}")
    elif not os.access(home, os.W_OK | os.X_OK):
        yield Finding(WRONG, "home", f"{home} cannot be written", "Check who owns it.")
    else:
        yield Finding(FINE, "home", str(home))


def _old_home(home: Path, former: Path | None) -> Iterator[Finding]:
    try:
        old_home.refuse(home, former)
    except FairlaneError as error:
        yield _error("home", error)


def _file(path: Path) -> str:
    return str(path) if path.exists() else "no file: the defaults"


def _policy(path: Path) -> Iterator[Finding]:
    problems = load.problems(path) if path.exists() else []
    if not problems:
        yield Finding(FINE, "policy", _file(path))
    for problem in problems:
        yield Finding(WRONG, "policy", problem.message, problem.hint)


def _start(
    home: Path, settings: Settings, daemon: Mapping[str, object] | None
) -> Iterator[Finding]:
    """What would keep a daemon from coming up, or keeps the one that runs."""
    for obstacle in upkeep.obstacles(home, settings):
        if obstacle.error_code != "invalid_policy":  # every problem of the policy was shown
            yield _error("daemon", obstacle)
    if daemon is not None:
        yield from _version_of(daemon)
    if daemon is not None and is_stopped(pid := int(str(daemon["pid"]))):
        text = f"`fairlane {daemon['what']}` (pid {pid}) is stopped by a signal: nothing starts"
        yield Finding(WRONG, "daemon", text, f"Let it continue: kill -CONT {pid}.")
    elif daemon is not None and daemon["begun"]:
        yield Finding(FINE, "daemon", f"`fairlane {daemon['what']}` runs (pid {daemon['pid']})")
    elif daemon is not None:
        text = f"a process (pid {daemon['pid'] or 'unknown'}) holds the lock, and is not up"
        level = NOTE if daemon["pid"] else WRONG  # it may be coming up
        yield Finding(level, "daemon", text, f"Its log is {home / 'daemon.log'}.")


def _version_of(daemon: Mapping[str, object]) -> Iterator[Finding]:
    """A daemon of another version may not understand what this one writes."""
    version = daemon.get("version", VERSION)
    if version != VERSION:
        whose = f"version {version}" if version else "an older version"
        text = f"`fairlane {daemon['what']}` (pid {daemon['pid']}) is of {whose}, not {VERSION}"
        hint = "`fairlane down`, then `fairlane up --detach`. Agents go on."
        yield Finding(WRONG, "version", text, hint)


def _sandboxes(settings: Settings) -> list[SandboxSettings]:
    """Every table: for all, of a project, of an agent."""
    agents = (agent.sandbox for agent in settings.agents.values())
    own = (table for table in agents if table is not None)
    return [settings.sandbox, *settings.sandbox.project.values(), *own]


def _kinds(settings: Settings) -> list[str]:
    """The kinds of sandboxes that tables ask for."""
    return sorted({table.kind for table in _sandboxes(settings) if table.kind} - {"none"})


def _shown_store(home: Path, settings: Settings, url: str) -> Iterator[Finding]:
    """Paths that no sandbox can show: the store and the tokens lie in them."""
    tables = _sandboxes(settings)
    named = {path for table in tables for path in (*(table.read or ()), *(table.write or ()))}
    named |= {*view.SYSTEM} if _kinds(settings) else set()
    store = upkeep.sqlite_path(url)
    for path in sorted(named):
        if held := view.secret_in(str(Path(path).expanduser()), home, store):
            text = f"{path} cannot be shown in a sandbox: {held} lies in it, so no agent starts"
            yield Finding(
                WRONG, "sandbox", text, "Give a smaller folder in read or write, or move it."
            )


def _sandbox(settings: Settings, home: Path) -> Iterator[Finding]:
    """Whether the sandboxes and limits that are asked for work here; else what could be."""
    tables = _sandboxes(settings)
    kinds = _kinds(settings)
    problems = {"bwrap": machine.bwrap_problem, "landlock": machine.landlock_problem}
    for kind in kinds:
        problem = problems[kind]()
        hint = "Agents that need it do not start. Install bubblewrap, or choose another kind."
        works = Finding(FINE, "sandbox", f"{kind} works here")
        yield Finding(WRONG, "sandbox", f"{kind}: {problem}", hint) if problem else works
    if not kinds:
        kind = machine.proposal()
        text = f'sandbox.kind = "{kind}" in {FILE} works here' if kind else "none works here"
        yield Finding(FINE, "sandbox", f"agents run without one; {text}")
    limited = any(table.memory is not None or table.processes is not None for table in tables)
    if limited and home.is_dir():
        kept = " and ".join(machine.kernel_limits(home)) or "no limit"
        yield Finding(FINE, "limits", f"the kernel keeps {kept}; the runner watches the rest")


def _disk(home: Path) -> Iterator[Finding]:
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    text = f"{free / (1 << 30):.1f} GiB are free"
    if free < DISK_BYTES_MIN:
        yield Finding(WRONG, "disk", text, "Free some space: nothing can be written soon.")
    else:
        yield Finding(NOTE if free < DISK_BYTES_LOW else FINE, "disk", text)


def _open_files(home: Path, settings: Settings) -> Iterator[Finding]:
    """Whether a daemon that is started here could watch all its agents; one that runs says so."""
    try:
        slots = slots_of(settings, Policy.load(home / POLICY_FILE))
    except FairlaneError:  # another finding says what is wrong
        return
    files = limits.files_for(slots)
    if files is not None:
        yield Finding(WRONG, "open_files", files.message(slots), limits.HINT)


def _store(
    home: Path, url: str, settings: Settings, clock: Clock, daemon: Mapping[str, object] | None
) -> Iterator[Finding]:
    path = upkeep.sqlite_path(url)
    if path is None:
        hint = "Write it as sqlite:PATH."
        yield Finding(WRONG, "store", f"not the URL of a store: {url!r}", hint)
    elif not path.exists():
        yield Finding(NOTE, "store", f"{path} is not there yet", "The first task makes it.")
        yield from _agents(settings, {settings.agent} if settings.agent else set())
    else:
        writer = holder_of(path)
        if writer is not None and writer.stopped:
            text = f"{writer.text} is stopped and holds the write lock: nobody can write"
            yield Finding(WRONG, "lock", text, way_out(writer))
        for process in writers_without_log(path):
            text = f"{path}-wal was removed while process {process} writes there: its work is lost"
            yield Finding(WRONG, "store", text, f"`fairlane down`, or kill {process}. {LOST_LOG}")
        try:
            findings = list(_file_of_store(path, daemon))
            yield from findings
            if all(finding.level == FINE for finding in findings):
                yield from _contents(home, path, settings, clock)
        except FairlaneError as error:
            yield _error("store", error)


def _file_of_store(path: Path, daemon: Mapping[str, object] | None) -> Iterator[Finding]:
    """The file as it lies there; an older schema is only told of."""
    from fairlane.store.sqlite.migrate import inspect

    schema, latest, wrong = inspect(path)
    if schema < latest and daemon is not None:
        yield _error("schema", old_home.old_daemon(daemon))
    elif schema < latest:
        old_home.refuse_old_server(path.parent)
        text = f"{path} has schema {schema}, to be brought to {latest}"
        yield Finding(NOTE, "schema", text, "The next command does it, after a backup.")
    for problem in wrong:
        hint = "Stop, and go back to the last backup in the folder backups."
        yield Finding(WRONG, "store", problem, hint)
    if not wrong:
        yield Finding(FINE, "store", f"{path} (schema {schema}) is whole")


def _contents(home: Path, path: Path, settings: Settings, clock: Clock) -> Iterator[Finding]:
    """What is in a store that is whole and of today's schema."""
    from fairlane.store.sqlite.store import SqliteStore

    store = SqliteStore.open(path)
    try:
        context = Context(home, store, settings, clock, "doctor")
        with store.read() as reading:
            policy = context.policy_for_reading(reading)
            now = context.now()
            yield from _leases(context, reading, now)
            yield from _lost_commits(home, reading)
            yield from _workers(reading, now, policy.lease.ttl)
            yield from _agents(settings, _agents_asked(reading, settings))
            found = troubles.current(reading)
            projects = [row for row in reading.table(Project).values() if row.repo is not None]
        yield from (Finding(FINE, *row) for row in sizes.kept(home, projects))
        for trouble in found:
            text = f"{trouble.message} (since {trouble.since})"
            yield Finding(WRONG, trouble.code, text, trouble.hint)
        yield from _warnings(context, {trouble.code for trouble in found})
    finally:
        store.close()


def _leases(context: Context, reading: Reading, now: Instant) -> Iterator[Finding]:
    attempts = reading.open_attempts()
    for attempt in attempts:
        try:
            recovery = _recovery(context, attempt, now)
        except Invalid as error:
            text = f"{attempt.lease} of {attempt.task} cannot be watched: {error.message}"
            yield Finding(
                WRONG, "executor", text, f"{error.hint} Or: fairlane cancel {attempt.task}."
            )
            continue
        if recovery:
            hint = "The next round does it, or: fairlane reclaim."
            yield Finding(NOTE, "lease", f"{attempt.lease} of {attempt.task} {recovery}", hint)
    yield Finding(FINE, "leases", f"{len(attempts)} in flight")


def _lost_commits(home: Path, reading: Reading) -> Iterator[Finding]:
    unknown = list(store_traces.unknown_attempts(home, reading))
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        text = f"{unknown[0]}{more} left a run folder, and the store does not know it"
        hint = f"The store is older than that: a backup, or fairlane.db-wal was removed. {LOST_LOG}"
        yield Finding(NOTE, "store", text, hint)


def _recovery(context: Context, attempt: Attempt, now: Instant) -> str:
    """What would become of an attempt that nobody keeps."""
    if is_here(attempt):
        context.executor(attempt.executor)  # says so if there is no such executor
    state, expired = state_of(context, attempt), attempt.expires_at <= now
    ended = f"ran out at {show_instant(attempt.expires_at)}"
    if isinstance(state, Running):
        return f"{ended}, but its process lives: it would be renewed" if expired else ""
    if isinstance(state, Ended):
        return "has ended: its result would be taken in"
    if expired:
        return f"{ended}: its attempt would be lost"
    if attempt.handle is not None and is_here(attempt):
        return "has no process any more: its attempt would be lost"
    return ""


def _workers(reading: Reading, now: Instant, ttl: int) -> Iterator[Finding]:
    for row in reading.table(WorkerRow).values():
        if now - row.seen_at >= ttl:
            text = f"{row.name} was last seen at {show_instant(row.seen_at)}: it gets no work"
            yield Finding(NOTE, "worker", text, "It comes back with its next lease.")


def _agents_asked(reading: Reading, settings: Settings) -> set[str]:
    """The agents that work in the queue asks for."""
    asked = {lane.key.agent for lane in reading.lanes("created", 1)}
    asked |= {project.agent for project in reading.table(Project).values()} | {settings.agent}
    return {name for name in asked if name}


def _agents(settings: Settings, asked: set[str]) -> Iterator[Finding]:
    from fairlane.agents.contract import agents
    from fairlane.agents.contract import installed as program_of

    try:
        known = agents(settings)
    except FairlaneError:  # another finding says what is wrong
        return
    for name in sorted(asked):
        agent = known.get(name)
        if agent is None:
            text = f"there is no agent {name}, but work asks for it"
            yield Finding(WRONG, "agent", text, f"Add [agents.{name}] to {FILE}.")
        elif name != "shell" and program_of(agent) is None:
            text = f"{name} is not installed, but work asks for it"
            yield Finding(WRONG, "agent", text, "Install it, or choose another agent.")
    programs = [program["name"] for program in installed()]
    text = f"installed: {', '.join(programs)}" if programs else "no agent program is on the path"
    yield Finding(FINE if programs else NOTE, "agents", text)


def _warnings(context: Context, told: set[str]) -> Iterator[Finding]:
    from fairlane.service.reports.status import status

    for warning in status(context)["warnings"]:
        if warning["code"] not in {"policy", *told}:
            yield Finding(NOTE, warning["code"], warning["message"])


def _error(what: str, error: FairlaneError) -> Finding:
    return Finding(WRONG, what, error.message, error.hint)
