"""What an agent adapter takes and gives: the values between agents, executors and the daemon."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from fairlane.model.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.lifecycle.usage import Tokens
    from fairlane.model.instant import Instant, Micros
    from fairlane.model.task import Outcome

    #: (key, values): a JSON line that has one of these values at this key is the final record.
    FinalRecord = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent: a command line, and the parser that reads what it prints."""

    name: str
    argv: tuple[str, ...]  # with placeholders; the first is the program
    parser: str
    resume: tuple[str, ...] | None = None  # to go on with a session; None: argv does both
    pool: str | None = None  # whose limits it shares
    permissions: str = "edit"
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # for {permissions}
    model: str | None = None
    stop: tuple[float, float] = (10.0, 5.0)  # seconds after the interrupt, after the terminate
    grace: float = 30.0  # seconds after its final record
    stdin: bool = False  # the prompt goes to standard input
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def resumes(self) -> bool:
        """Whether it can go on with a session."""
        words = self.resume if self.resume is not None else self.argv
        return any("{session}" in word for word in words)


@dataclass(frozen=True, slots=True)
class Launch:
    """What an executor needs to start one attempt."""

    argv: tuple[str, ...]  # never a text that a shell interprets
    env: Mapping[str, str] = field(repr=False)  # the agent's; the pool's and the task's go on top
    stdin: str | None  # text for standard input; None: /dev/null
    stop: tuple[float, float]  # seconds after the interrupt, after the terminate
    grace: float  # seconds after the last final record, then the whole group is stopped
    final: tuple[FinalRecord, ...]  # empty: the program prints none


@dataclass(frozen=True, slots=True)
class Seen:
    """What one line of output tells."""

    kind: str  # session, text, tool, usage, retry, limit, final, error, other
    text: str = ""
    tokens: Tokens | None = None  # totals so far, where the program says so
    usd: int | None = None  # micro-dollars so far
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an attempt ended, as its program tells it."""

    outcome: Outcome
    detail: str = ""  # one line for people
    tokens: Tokens | None = None  # None: the program did not say
    usd: int | None = None  # micro-dollars
    session: str | None = None
    model: str | None = None
    retry_after: Micros | None = None  # a short throttle: how long the provider asked to wait
    resets_at: Instant | None = None  # a used-up window: when it opens again
    pause: str = ""  # not empty: nobody can work; the pool is paused with this reason
    summary: str = ""  # the agent's last words


class Parser(Protocol):
    """Reads the output of one attempt, line by line; no line makes it raise."""

    def line(self, text: str) -> Iterator[Seen]:
        """What a line of standard output tells."""

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """How it ended: by the final record if there was one, else by the exit code."""
