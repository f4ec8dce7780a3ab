"""Watch: the attempts that this worker holds leases for, their ends and their output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fairlane.agents.contract import OutputLine, Parser
from fairlane.agents.parsers import parser_for
from fairlane.clock import Waitable
from fairlane.engine.attempts import Progress
from fairlane.executors.base import Executor, Handle, Watch
from fairlane.executors.runfiles import Lines, append, damage_of
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.project import Tokens
from fairlane.runtime.launch import Host

#: How much of a log is read in one turn of the loop: a chatty agent delays no other.
TURN_BYTES = 1 << 19


@dataclass(slots=True)
class RunningAttempt:
    """One attempt with its lease, and what was read of its output."""

    lease: LocalLeaseDocument
    handle: Handle
    executor: Executor
    parser: Parser
    log: Lines
    stopping: str = ""
    settling: bool = False  # its end is being taken in, perhaps by another thread
    damage: str = ""  # why its output cannot be read
    final: bool = False  # its final record was read
    progress: Progress = field(default_factory=Progress)
    reported: Progress = field(default_factory=Progress)  # what the store knows

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

    def catch_up(self) -> None:
        """Read some more of its log: progress for the store, lines for `events.jsonl`."""
        with suppress(OSError):  # its end tells what is wrong
            self._take(self.log.more(TURN_BYTES))

    def read_out(self, record: str = "") -> None:
        """It has ended: read its log to the end, however long it is.

        `record` is the final record as its runner kept it, where a full disk has cut the log.
        """
        try:
            for lines in self.log.rest():
                self._take(lines)
        except OSError as error:
            self.damage = damage_of(error)
        if record and not self.final and not self.damage:
            self._take([record])

    def _take(self, lines: list[str]) -> None:
        parsed = [output for line in lines for output in self.parser.line(line)]
        for output in parsed:
            self.final = self.final or output.kind == "final"
            self.progress = _newer(self.progress, output)
        if parsed:
            with suppress(OSError):  # no room, or no file of ours: the store has what matters
                text = "".join(json.dumps(_document(output)) + "\n" for output in parsed)
                append(self.run / "events.jsonl", text)


class RunningAttempts:
    """Attempts by lease; each is watched for its end."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._watches: dict[str, Watch] = {}
        self.attempts: dict[str, RunningAttempt] = {}

    def add(self, lease: LocalLeaseDocument, handle: Handle) -> RunningAttempt:
        """Watch one more."""
        running = running_attempt(self._host, lease, handle)
        watch = running.executor.watch(handle)  # first: what is not watched has ended
        self.attempts[running.id] = running
        if watch is not None:  # None: it has ended already, and `ended` names it
            self._watches[running.id] = watch
        return running

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
        news = {}
        for lease, running in self.attempts.items():
            if running.settling:
                continue
            running.catch_up()
            if running.progress != running.reported:
                news[lease] = running.progress
        return news

    def reported(self, progress: Mapping[str, Progress]) -> None:
        """The store knows this progress now."""
        for lease, news in progress.items():
            self.attempts[lease].reported = news


def running_attempt(host: Host, lease: LocalLeaseDocument, handle: Handle) -> RunningAttempt:
    """An attempt that has just started, was adopted, or has ended unseen."""
    used = lease["baseline"]
    parser = parser_for(host.reader_of(lease), None if used is None else Tokens(*used))
    executor = host.executor_of(lease)
    return RunningAttempt(lease, handle, executor, parser, Lines(executor, handle.run))


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
