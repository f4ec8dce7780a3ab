"""Views of a running scheduler: one line of progress, or a screen of slots, shares and holds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fairlane.cli.output import about, cut, has_colour, in_seconds, listed, paint, safe, width
from fairlane.clock import SYSTEM
from fairlane.model.documents.reports import RunningDocument, StatusAnswer
from fairlane.model.instant import parse_instant
from fairlane.model.project import Project

if TYPE_CHECKING:
    from fairlane.daemon.main import Daemon
    from fairlane.engine.attempts import Progress
    from fairlane.engine.context import Context
    from fairlane.model.instant import Instant

#: How often something is drawn.
DRAW_SECONDS = 0.25
_BAR = 24


class Bar:
    """One line that is written over itself on a terminal; off one, a line a change."""

    def __init__(self, silent: bool = False) -> None:
        self._live = has_colour(sys.stderr) or sys.stderr.isatty()
        self._silent = silent
        self._drawn_at = 0.0
        self._shown = ""

    def say(self, message: str) -> None:
        """Something that stays on the screen."""
        self.close()
        print(safe(message), file=sys.stderr)

    def tick(self, daemon: Daemon) -> None:
        """Draw what there is, not too often."""
        if self._silent or SYSTEM.monotonic() - self._drawn_at < DRAW_SECONDS:
            return
        self._drawn_at = SYSTEM.monotonic()
        line = _progress(daemon)
        if self._live:
            sys.stderr.write(f"\r\x1b[2K{cut(line, width() - 1)}")
            sys.stderr.flush()
        elif line != self._shown:
            print(line, file=sys.stderr)
        self._shown = line

    def close(self) -> None:
        """Erase the line."""
        if self._live and self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._shown = ""


def _progress(daemon: Daemon) -> str:
    running = sorted(attempt.task for attempt in daemon.attempts.running.attempts.values())
    waits = daemon.decided.waiting if daemon.decided else 0
    done = daemon.attempts.ended
    part = done * _BAR // max(1, done + waits + len(running))
    bar = "█" * part + "░" * (_BAR - part)
    names = f" ({listed(running[:4], len(running))})" if running else ""
    return f"{bar} {done} ended, {len(running)} running{names}, {waits} waiting"


class Screen:
    """A screen that is drawn over itself: slots, projects and their shares, what waits and why."""

    def __init__(self, context: Context, title: str, silent: bool = False) -> None:
        self._context, self._title, self._silent = context, title, silent
        self._live = sys.stdout.isatty() and not silent
        self._drawn_at = 0.0
        self._lines = 0
        self._told: set[int] = set()

    def say(self, message: str) -> None:
        """Something worth a line of its own."""
        if not self._live and not self._silent:
            print(safe(message), flush=True)

    def tick(self, daemon: Daemon) -> None:
        """Draw, not too often; off a terminal, tell what happened."""
        if SYSTEM.monotonic() - self._drawn_at < DRAW_SECONDS:
            return
        self._drawn_at = SYSTEM.monotonic()
        if self._live:
            self._draw(screen_lines(daemon, self._context, self._title))
        elif not self._silent:
            self._tell()

    def close(self) -> None:
        """Erase the screen."""
        if self._live and self._lines:
            sys.stdout.write(f"\x1b[{self._lines}A\x1b[J\x1b[?25h")
            sys.stdout.flush()
        elif not self._silent:
            self._tell()

    def _draw(self, lines: list[str]) -> None:
        up = f"\x1b[{self._lines}A" if self._lines else "\x1b[?25l"
        body = "".join(f"\x1b[2K{line}\n" for line in lines)
        sys.stdout.write(f"{up}{body}\x1b[J")
        sys.stdout.flush()
        self._lines = len(lines)

    def _tell(self) -> None:
        from fairlane.cli.look.events import event_line
        from fairlane.service.reports.documents import event as document

        with self._context.store.read() as reading:
            after = max(self._told, default=0)
            events = reading.events(after)
        for event in events:
            self._told = {event.number}
            if event.kind not in ("added", "leased"):
                print(event_line(document(event), self._context.now()), flush=True)


def screen_lines(daemon: Daemon, context: Context, title: str) -> list[str]:
    """Everything that is going on, in at most a screen."""
    from fairlane.service.reports import status

    answer = status.status(context)
    running, cap = answer["running"], answer["capacity"]["cap"] or len(answer["running"])
    head = f"{len(running)} of {cap} slots · {answer['queued']['total']} queued"
    parked = f" · {answer['parked']} parked" if answer["parked"] else ""
    news = {attempt.task: attempt.progress for attempt in daemon.attempts.running.attempts.values()}
    lines = [paint(f"{title}   {head}{parked}", "bold"), ""]
    lines += [_slot(run, news.get(run["task"]), context.now()) for run in running]
    lines += [paint("  · free", "dim")] * max(0, min(12, cap - len(running)))
    return [*lines, "", *_projects(context), "", *_waits(answer)]


def _slot(run: RunningDocument, news: Progress | None, now: Instant) -> str:
    age = about(now - parse_instant(run["leased_at"])).replace("less than 1s", "0s")
    tokens = run["tokens"] or (news.tokens and news.tokens[0] + news.tokens[1] if news else 0)
    words = cut(run["title"] or (news.note if news else ""), max(10, width() - 52))
    name = f"{safe(run['task']):<12} {safe(run['project']):<8}"
    return f"  {paint('▶', 'green')} {name} {age:>8}  {tokens or 0:>7} tok  {safe(words)}"


def _projects(context: Context) -> list[str]:
    """How far each project is, and what its weight is."""
    with context.store.read() as reading:
        tallies, projects = reading.tallies(), reading.table(Project)
    lines = []
    for name, project in projects.items():
        mine = [tally for tally in tallies if tally.project == name]
        total = sum(tally.count for tally in mine)
        done = sum(tally.count for tally in mine if tally.status == "done")
        if total:
            part = done * _BAR // total
            bar = paint("█" * part, "cyan") + paint("░" * (_BAR - part), "dim")
            lines.append(f"  {safe(name):<8} weight {project.weight}  {bar} {done} of {total} done")
    return lines


def _waits(answer: StatusAnswer) -> list[str]:
    """What waits, by the rule that holds it."""
    reasons: dict[str, int] = {}
    for hold in answer["holds"]:
        reasons[hold["reason"]] = reasons.get(hold["reason"], 0) + hold["count"]
    return [
        f"  {number:>3} wait: {safe(cut(in_seconds(reason), width() - 14))}"
        for reason, number in list(reasons.items())[:6]
    ]
