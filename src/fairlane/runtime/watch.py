"""Watch: the attempts that this worker holds leases for, their ends and their output."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fairlane.agents.contract import OutputLine, Parser
from fairlane.agents.parsers import parser_for
from fairlane.clock import Waitable
from fairlane.engine.attempts import Progress
from fairlane.engine.end_attempt import Ending
from fairlane.executors.base import Executor, Handle, Watch
from fairlane.executors.runfiles import Lines, append, damage_of, put
from fairlane.model.amounts import LINE_MAX
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.instant import Instant
from fairlane.model.project import Tokens
from fairlane.model.record import dataclass, field
from fairlane.model.task import Outcome
from fairlane.runtime.launch import Host

#: How much of a log is read at once, and for how long logs are read in one turn of the loop:
#: chatty agents delay no other. What is left at an agent's end is read in a thread.
TURN_BYTES = 1 << 13
TURN_SECONDS = 0.1
#: How many lines of an attempt are parsed; after them the last of each part, and final records.
LINES_MAX = 200_000


@dataclass(slots=True)
class RunningAttempt:
    """One attempt with its lease, and what was read of its output."""

    lease: LocalLeaseDocument
    handle: Handle
    executor: Executor
    parser: Parser
    log: Lines
    log_max: int  # most bytes of a log, and of `events.jsonl`
    stopping: str = ""
    settling: bool = False  # its end is being taken in, perhaps by another thread
    damage: str = ""  # why its output cannot be read
    final: bool = False  # its final record was read
    checking: Handle | None = None  # the setup before its agent, or the check after it
    ending: Ending | None = None  # what its agent's end means, unless a check says otherwise
    progress: Progress = field(default_factory=Progress)
    reported: Progress = field(default_factory=Progress)  # what the store knows
    _lines: int = 0  # that were read
    _events: bool | None = None  # whether `events.jsonl` has room; None: it is not begun

    @property
    def id(self) -> str:
        """Its lease's id."""
        return self.lease["lease"]

    @property
    def task(self) -> str:
        """Its task's id."""
        return self.lease["task"]

    @property
    def run(self) -> Path:
        """Its run folder."""
        return self.handle.run

    @property
    def process(self) -> Handle:
        """What runs, or ran last: its agent, or one of its checks."""
        return self.checking or self.handle

    def stop(self, why: str) -> None:
        """Stop what runs, once."""
        if not self.stopping:
            self.executor.stop(self.process)
            self.stopping = why  # after it: a stop that failed is sent again

    def catch_up(self) -> bool:
        """Read some more of its log: progress for the store, lines for `events.jsonl`.

        True: there may be more.
        """
        with suppress(OSError):  # its end tells what is wrong
            before = self.log.at
            self._take(self.log.more(TURN_BYTES))
            return self.log.at - before == TURN_BYTES
        return False

    def read_out(self, record: str = "") -> None:
        """It has ended: read its log to the end, however long it is.

        `record` is the final record as its runner kept it, where a full disk has cut the log.
        """
        try:
            for lines in self.log.rest(self.log_max + LINE_MAX + TURN_BYTES):
                self._take(lines)
        except OSError as error:
            self.damage = damage_of(error)
        if record and not self.final and not self.damage:
            self._take([record])

    def says_success(self, now: Instant) -> bool:
        """Whether its final record, at the end of its log, reports a success."""
        self.read_out()
        return self.final and self.parser.verdict(0, None, "", now).outcome is Outcome.SUCCEEDED

    def _take(self, lines: list[str]) -> None:
        parsed = [output for line in self._chosen(lines) for output in self.parser.line(line)]
        for output in parsed:
            self.final = self.final or output.kind == "final"
            self.progress = _newer(self.progress, output)
        if parsed and self._events is not False:
            with suppress(OSError):  # no room, or no file of ours: the store has what matters
                self._keep(parsed)

    def _chosen(self, lines: list[str]) -> list[str]:
        """The lines to parse: a flood of them is cut down to what its end needs."""
        room = max(0, LINES_MAX - self._lines)
        self._lines += len(lines)
        if len(lines) <= room:
            return lines
        words = [word for _, known in self.parser.FINAL for word in known]
        flood = lines[room:]
        finals = [n for n, line in enumerate(flood) if any(word in line for word in words)]
        return lines[:room] + [flood[n] for n in sorted({*finals[-1:], len(flood) - 1})]

    def _keep(self, parsed: Sequence[OutputLine]) -> None:
        """Add to `events.jsonl`; who reads a log from its beginning begins this file anew."""
        file = self.run / "events.jsonl"
        if self._events is None:
            put(file, "")
            self._events = True
        text = "".join(json.dumps(_document(output)) + "\n" for output in parsed)
        self._events = append(file, text, self.log_max)


class RunningAttempts:
    """Attempts by lease; each is watched for its end."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._watches: dict[str, Watch] = {}
        self._unread: deque[str] = deque()  # leases, in the order in which their logs are read
        self.attempts: dict[str, RunningAttempt] = {}

    def add(self, lease: LocalLeaseDocument, handle: Handle) -> RunningAttempt:
        """Watch one more."""
        running = running_attempt(self._host, lease, handle)
        watch = running.executor.watch(handle)  # first: what is not watched has ended
        self.attempts[running.id] = running
        if watch is not None:  # None: it has ended already, and `ended` names it
            self._watches[running.id] = watch
        return running

    def begin_setup(self, lease: LocalLeaseDocument, setup: Handle) -> None:
        """The setup of its workspace runs before its agent: watch that."""
        running = running_attempt(self._host, lease, Handle(Path(lease["run"])))
        self.attempts[running.id] = running
        self.goes_on(running.id, setup)

    def goes_on(self, lease: str, process: Handle) -> bool:
        """A check runs after its agent, or its agent after the setup: watch that.

        A stop that was asked for holds for it too. True: its agent has started.
        """
        running = self.attempts[lease]
        is_agent = process.run == running.run
        if is_agent:
            running.handle = process
        running.checking, running.settling = None if is_agent else process, False
        if running.stopping:
            running.executor.stop(process)
        watch = running.executor.watch(process)
        if watch is not None:
            self._watches[lease] = watch
        return is_agent

    def remove(self, leases: Iterable[str]) -> None:
        """These are no longer ours to watch."""
        for lease in leases:
            self.attempts.pop(lease, None)
            self.unwatch(lease)

    def unwatch(self, lease: str) -> None:
        """Its end is known."""
        watch = self._watches.pop(lease, None)
        if watch is not None:
            watch.close()

    def close(self) -> None:
        """Watch nothing more; who was running stays known."""
        for lease in tuple(self._watches):
            self.unwatch(lease)

    def waitables(self) -> list[Waitable]:
        """What becomes ready when an attempt ends."""
        return list(self._watches.values())

    def ended(self) -> list[RunningAttempt]:
        """Attempts that have ended, and whose end is not being taken in."""
        ready = self._host.clock.wait(0.0, *self._watches.values()) if self._watches else []
        return [
            running
            for lease, running in self.attempts.items()
            if not running.settling
            and (lease not in self._watches or self._watches[lease] in ready)
        ]

    def progress(self) -> dict[str, Progress]:
        """What attempts have printed that the store does not know yet."""
        self._read_some()
        return {
            lease: running.progress
            for lease, running in self.attempts.items()
            if not running.settling and running.progress != running.reported
        }

    def _read_some(self) -> None:
        """Read logs in turn, for a while; the next call goes on where this one ends."""
        clock = self._host.clock
        end = clock.monotonic() + TURN_SECONDS
        waiting = set(self._unread)
        self._unread.extend(lease for lease in self.attempts if lease not in waiting)
        while self._unread and clock.monotonic() < end:
            lease = self._unread.popleft()
            running = self.attempts.get(lease)
            if running is not None and not running.settling and running.catch_up():
                self._unread.append(lease)

    def reported(self, progress: Mapping[str, Progress]) -> None:
        """The store knows this progress now."""
        for lease, news in progress.items():
            self.attempts[lease].reported = news


def running_attempt(host: Host, lease: LocalLeaseDocument, handle: Handle) -> RunningAttempt:
    """An attempt that has just started, was adopted, or has ended unseen."""
    used = lease["baseline"]
    parser = parser_for(host.reader_of(lease), None if used is None else Tokens(*used))
    executor = host.executor_of(lease)
    log, most = Lines(executor, handle.run), host.settings.log.max_bytes
    return RunningAttempt(lease, handle, executor, parser, log, most)


def _newer(before: Progress, output: OutputLine) -> Progress:
    return Progress(
        tokens=output.tokens if output.tokens is not None else before.tokens,
        usd=output.usd if output.usd is not None else before.usd,
        session=output.session or before.session,
        note=output.text[:200] if output.kind in ("text", "tool") and output.text else before.note,
    )


def _document(output: OutputLine) -> dict[str, object]:
    document: dict[str, object] = {"kind": output.kind, "text": output.text}
    if output.tokens is not None:
        document["tokens"] = output.tokens._asdict()
    return document
