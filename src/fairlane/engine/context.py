"""Context: what every operation works with: the store, the policy, the settings, the time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.clock import Clock
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import Instant
from fairlane.model.project import PolicyText, WorkerRow
from fairlane.model.record import dataclass, field, replace
from fairlane.model.task import SETUP, Attempt
from fairlane.policy.policy import Policy
from fairlane.settings import Settings, host_name
from fairlane.store.base import Reading, Store

if TYPE_CHECKING:
    from fairlane.engine.look.view import View
    from fairlane.engine.records.recording import Recording
    from fairlane.executors.base import Executor

#: The store's file in the home folder.
STORE_FILE = "fairlane.db"
#: The slots of a worker where neither the settings nor cap `all` say how many.
WITHOUT_CAP = 4
#: The least pause between two parts of long work: who came for the lock meanwhile asks for it
#: again sooner than that, or within the time for which it was held.
PAUSE_SECONDS = 0.025
#: What tells one content of a file from another: inode, time, size; None: no file.
FileMark = tuple[int, int, int] | None
#: One check of an attempt: name, argv, timeout; later started_at, exit, passed, seconds, tail.
Row = Mapping[str, object]


@dataclass(slots=True)
class Context:
    """One per program; operations take it as their first argument."""

    home: Path
    store: Store
    settings: Settings
    clock: Clock
    actor: str
    warnings: list[str] = field(default_factory=list)  # for people, on standard error
    db: str | None = None  # the store's URL, where a caller named one
    lease: str | None = None  # of the attempt that calls; None: a person
    executors: dict[str, Executor] = field(default_factory=dict)  # by name, as they are needed
    recordings: dict[str, Recording] = field(default_factory=dict)  # of whole rounds, and others
    artifacts_after: int = 0  # the task up to which the last round looked for artifacts
    view: View | None = field(default=None, init=False, repr=False)  # what rounds have read
    _policy: tuple[FileMark, Policy] | None = field(default=None, init=False, repr=False)

    @property
    def policy_file(self) -> Path:
        """The policy file of this home."""
        return self.home / "policy.toml"

    def now(self) -> Instant:
        """The time that decides."""
        return self.clock.now()

    def give_way(self, began: float) -> None:
        """Leave the store to others after a part that `began` then, for as long as it took."""
        self.clock.wait(max(PAUSE_SECONDS, self.clock.monotonic() - began))

    def executor(self, name: str = "") -> Executor:
        """An executor of this host; without a name the one that the settings choose."""
        name = name or self.settings.worker.executor
        if name not in self.executors:
            from fairlane.executors import executor_named

            self.executors[name] = executor_named(name)
        return self.executors[name]

    def policy(self) -> Policy:
        """The policy in force; a broken file refuses whatever would decide or accept something.

        It is read again when the file has changed.
        """
        mark = _mark(f"{self.home}/policy.toml")
        if self._policy is None or self._policy[0] != mark:
            self._policy = (mark, Policy.load(self.policy_file))
        return self._policy[1]

    def policy_for_reading(self, reading: Reading) -> Policy:
        """The policy in force; with a broken file the last good one, and a warning."""
        try:
            return self.policy()
        except FairlaneError as error:
            last = self._policy[1] if self._policy is not None else _recorded(reading)
            shown = "the defaults are shown" if last is None else "the last good policy is shown"
            warning = f"{error.message} ({shown})"
            if warning not in self.warnings:
                self.warnings.append(warning)
            if last is None:
                return Policy.preset("balanced")
            return replace(last, preset_name="last good")


def _recorded(reading: Reading) -> Policy | None:
    """The policy of the last decision; its preset was not recorded."""
    text = reading.table(PolicyText).get(str(reading.value("policy")))
    return None if text is None else parse_recorded(text.text)


def _mark(path: str) -> FileMark:
    try:
        stat = os.stat(path)  # noqa: PTH116 - asked before every operation
    except FileNotFoundError:
        return None
    except OSError:
        return (0, 0, 0)  # not readable: loading it says why
    return (stat.st_ino, stat.st_mtime_ns, stat.st_size)


def parse_recorded(text: str) -> Policy:
    """A policy as decisions keep it."""
    import json

    return Policy.parse(json.loads(text), "recorded policy")


def slots_of(settings: Settings, policy: Policy) -> int:
    """As many as the settings say, else as many as cap `all` lets run."""
    if settings.worker.slots is not None:
        return settings.worker.slots
    cap = policy.caps.get("all")
    return WITHOUT_CAP if cap is None else cap


def slot_limit(settings: Settings, policy: Policy) -> int | None:
    """The same for planning; None where cap `all` is the limit, which a plan may try to raise."""
    if settings.worker.slots is None and policy.caps.get("all") is not None:
        return None
    return slots_of(settings, policy)


def follows_policy(settings: Settings, row: WorkerRow) -> bool:
    """Whether this is the worker of this machine, and the policy gives its slots."""
    rules = settings.worker
    return row.name == rules.name and rules.slots is None and row.slots is not None


def direct_slots(settings: Settings, policy: Policy) -> int:
    """For direct starts, which no cap holds: what cap `all` gives is not below the usual number."""
    slots = slots_of(settings, policy)
    return slots if settings.worker.slots is not None else max(slots, WITHOUT_CAP)


def run_path(home: Path, attempt: Attempt) -> str:
    """Where one attempt leaves its traces."""
    return f"{home}/runs/{attempt.task}/{attempt.number}"


def run_folder(home: Path, attempt: Attempt) -> Path:
    """The same as a path."""
    return Path(run_path(home, attempt))


def is_here(attempt: Attempt) -> bool:
    """Whether an executor of this host runs the attempt, or did."""
    return attempt.executor != "none" and attempt.host == host_name()


@dataclass(frozen=True, slots=True)
class Facts:
    """What the executors of this host said about expired attempts, before a transaction."""

    gone: frozenset[str] = frozenset()  # leases of attempts that do not run and left no result
    present: frozenset[str] = frozenset()  # of those that run, or left one

    def alive(self, attempt: Attempt, now: Instant) -> bool:
        """Whether it goes on when its lease expires: it is here, and not known to be gone.

        One that has no process yet may never get one: its expiry is a time to look again.
        """
        waits = attempt.handle is None and attempt.expires_at > now
        return is_here(attempt) and attempt.lease not in self.gone and not waits


def expired_here(attempts: Iterable[Attempt], now: Instant) -> list[Attempt]:
    """The attempts of this host whose lease is over: only what their executor says ends them."""
    return [attempt for attempt in attempts if attempt.expires_at <= now and is_here(attempt)]


def folder_of(run: Path, number: int, row: Row) -> Path:
    """Where a check leaves its traces: beside those of its attempt, each start its own."""
    starts = row.get("starts", 1)
    again = "" if starts == 1 else f".{starts}"
    return run.with_name(f"{run.name}.check.{number}{again}")


def setup_folder(run: Path, attempt: Attempt) -> Path | None:
    """Where the setup of an attempt runs, or has ended unseen; None: its agent has begun."""
    for number, row in enumerate(attempt.checks):
        if row["name"] == SETUP and "started_at" in row and row.get("passed") is None:
            return folder_of(run, number, row)
    return None
