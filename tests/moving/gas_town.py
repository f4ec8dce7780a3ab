"""Towns of Gas Town, made at random, and what its scheduler dispatches next.

`Scheduler` is written from its document: sling contexts, `bd ready`, capacity, batch, circuit
breaker, pause. The context that waits longest is first, and of equal ones the smaller id.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from fairlane.model.instant import SECOND, parse_instant, show_instant
from tests.conformance.samples.beads import bead, edges

FAILURES_MAX = 3
HEARTBEAT_SECONDS = 180
#: Dependencies that keep a bead from being ready; the rest are for people.
BLOCKING = ("blocks", "waits-for")
OTHERS = ("related", "discovered-from", "tracks", "relates-to")


@dataclass
class Context:
    """An open sling context."""

    bead: str
    enqueued: int
    failures: int = 0
    id: str = ""


@dataclass
class Scheduler:
    """What `gt scheduler run` does at a heartbeat, and what happens between two of them."""

    max_polecats: int
    batch: int
    beads: dict[str, dict[str, Any]]
    contexts: dict[str, Context] = field(default_factory=dict)  # open ones, by bead
    broken: dict[str, Context] = field(default_factory=dict)  # those whose circuit broke
    active: set[str] = field(default_factory=set)
    paused: bool = False
    hollow: set[str] = field(default_factory=set)  # epics without open beads, when it was moved

    @property
    def deferred(self) -> bool:
        return self.max_polecats > 0

    def ready(self, now: int) -> set[str]:
        """What `bd ready` lists."""
        return {name for name in self.beads if self._is_ready(name, now)}

    def plan(self, now: int) -> list[str]:
        """What is dispatched now: the smallest of capacity, batch and what is ready."""
        ready = self.ready(now)
        waiting = [context for context in self.contexts.values() if context.bead in ready]
        names = [
            context.bead for context in sorted(waiting, key=lambda each: (each.enqueued, each.id))
        ]
        if self.paused:
            return []
        if not self.deferred:
            return names
        return names[: max(0, min(self.max_polecats - len(self.active), self.batch))]

    def dispatched(self, name: str) -> None:
        del self.contexts[name]
        self.beads[name]["status"] = "hooked"
        self.active.add(name)

    def not_dispatched(self, name: str) -> None:
        """It is tried again at the next heartbeat, up to three times in a row."""
        self.contexts[name].failures += 1
        if self.contexts[name].failures >= FAILURES_MAX:
            self.broken[name] = self.contexts.pop(name)

    def closed(self, name: str) -> None:
        self.active.remove(name)
        self.beads[name]["status"] = "closed"

    def retried(self, name: str) -> None:
        """Somebody has looked at it: the count begins anew, its place is kept."""
        self.contexts[name] = replace(self.broken.pop(name), failures=0)

    def _is_ready(self, name: str, now: int) -> bool:
        row = self.beads[name]
        until = row.get("defer_until")
        if row["status"] != "open" or row["issue_type"] == "epic" or row.get("ephemeral"):
            return False
        if until is not None and parse_instant(until) > now:
            return False
        return not any(self._is_blocked(part) for part in (name, *self.above(name)))

    def _is_blocked(self, name: str) -> bool:
        needs = self._to(name, *BLOCKING)
        return bool(self._to(name, "conditional-blocks")) or any(map(self._is_open, needs))

    def _is_open(self, name: str) -> bool:
        """An epic is closed with the last bead in it; one that had none left stays open."""
        row = self.beads.get(name)
        if row is None or row["status"] == "closed":
            return False
        if row["issue_type"] != "epic":
            return True
        return name in self.hollow or self.holds_work(name)

    def holds_work(self, epic: str) -> bool:
        """Whether anything in it is not closed."""
        parts = [row for name, row in self.beads.items() if epic in self.above(name)]
        return any(row["status"] != "closed" for row in parts if row["issue_type"] != "epic")

    def above(self, name: str) -> list[str]:
        above = self._to(name, "parent-child")
        return [*above, *(higher for part in above for higher in self.above(part))]

    def _to(self, name: str, *sorts: str) -> list[str]:
        rows = self.beads[name].get("dependencies", ())
        return [row["depends_on_id"] for row in rows if row["type"] in sorts]


class Town:
    """A town's folder, and the scheduler that owns it."""

    def __init__(self, folder: Path, seed: int, now: int, deferred: bool | None = None) -> None:
        self.folder, self.random, self.now = folder, Random(seed), now
        self.deferred = self.random.random() < 0.8 if deferred is None else deferred
        self.awaited: set[str] = set()  # beads that others name
        self.rows: list[dict[str, Any]] = []
        self.scheduler = Scheduler(*self._settings(), {})
        self._state()
        self._rigs()
        self._beads()
        if self.deferred:
            self._contexts()
        self._write()

    def _put(self, name: str, document: object) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document), encoding="utf-8")

    def _settings(self) -> tuple[int, int]:
        draw = self.random
        most = draw.randint(1, 5) if self.deferred else draw.choice((-1, 0))
        batch = draw.randint(1, 3)
        scheduler: dict[str, Any] = {"max_polecats": most, "batch_size": batch}
        if draw.random() < 0.4:
            scheduler["spawn_delay"] = draw.choice(("0s", "", "3s"))
        if self.deferred and draw.random() < 0.3:
            del scheduler["batch_size"]
            batch = 1
        self._put("settings/config.json", {"type": "town-settings", "scheduler": scheduler})
        return most, batch

    def _state(self) -> None:
        """A pause, in the file of today or in the one of before."""
        draw = self.random
        name = draw.choice(("scheduler-state.json", "queue-state.json", ""))
        if name:
            self.scheduler.paused = draw.random() < 0.2
            self._put(f".runtime/{name}", {"paused": self.scheduler.paused, "paused_by": "mayör"})

    def _rigs(self) -> None:
        rigs = {"web": {"beads": {"prefix": "wb"}}, "api": {"beads": {"prefix": "ap-"}}}
        self._put("mayor/rigs.json", {"version": 1, "rigs": {**rigs, "bare": {"beads": None}}})

    def _beads(self) -> None:
        draw = self.random
        for at in range(draw.randint(1, 20)):
            name = f"{draw.choice(('wb', 'ap'))}-{at:x}"
            status = draw.choice(
                ("open",) * 9 + ("closed", "in_progress", "hooked", "blocked", "deferred", "triage")
            )
            row = bead(
                name, draw.choice(("Größe", "x\ty", "a" * 80)), status, priority=draw.randint(0, 4)
            )
            if draw.random() < 0.12:
                row["issue_type"] = "epic"
                row["status"] = "open"
            if draw.random() < 0.15:
                row["defer_until"] = show_instant(self.now + draw.choice((-60, 400)) * SECOND)
            row["dependencies"] = self._edges(name)
            self.rows.append(row)
            self.scheduler.beads[name] = dict(row)
        epics = [row["id"] for row in self.rows if row["issue_type"] == "epic"]
        self.scheduler.hollow = {name for name in epics if not self.scheduler.holds_work(name)}

    def _edges(self, name: str) -> list[dict[str, str]]:
        """Only to earlier ones, and into no epic that somebody waits for: nothing goes around."""
        draw, earlier = self.random, self.scheduler.beads
        found = []
        if earlier and draw.random() < 0.35:
            sort = draw.choice((*BLOCKING, "blocks", "blocks", "conditional-blocks", *OTHERS))
            target = draw.choice(list(earlier))
            found += edges(name, target, sort=sort)
            self.awaited.add(target)
        epics = [
            each
            for each, row in earlier.items()
            if row["issue_type"] == "epic"
            and self.awaited.isdisjoint((each, *self.scheduler.above(each)))
        ]
        if epics and draw.random() < 0.5:
            found += edges(name, draw.choice(epics), sort="parent-child")
        return found

    def _contexts(self) -> None:
        """Most beads are slung, some are not, some were, and some are broken."""
        draw, scheduler = self.random, self.scheduler
        work = [row for row in self.rows if row["issue_type"] != "epic"]
        for at, row in enumerate(work):
            name, how = row["id"], draw.random()
            enqueued = self.now - draw.randint(0, 5) * 60 * SECOND
            failures = draw.choice((0, 0, 0, 1, 2, 3))
            if how < 0.75 or at == 0:
                self._context(name, enqueued, failures, {})
                if failures < FAILURES_MAX:
                    scheduler.contexts[name] = Context(name, enqueued, failures, f"ctx-{name}")
                elif row["status"] not in ("closed", "in_progress", "hooked"):
                    scheduler.broken[name] = Context(name, enqueued, 0, f"ctx-{name}")
            elif how < 0.9:
                why = draw.choice(("dispatched", "cleared", "circuit-broken"))
                self._context(name, enqueued, 0, {"status": "closed", "close_reason": why})
                if why == "circuit-broken" and row["status"] not in (
                    "closed",
                    "in_progress",
                    "hooked",
                ):
                    scheduler.broken[name] = Context(name, enqueued, 0, f"ctx-{name}")

    def _context(self, name: str, enqueued: int, failures: int, more: dict[str, Any]) -> None:
        said = {
            "version": 1, "work_bead_id": name, "enqueued_at": show_instant(enqueued),
            "target_rig": "web" if name.startswith("wb") else "api",
            "dispatch_failures": failures, "last_failure": "zu müde" if failures else "",
        }  # fmt: skip
        self.rows.append(
            bead(
                f"ctx-{name}",
                "sling",
                description=json.dumps(said),
                labels=["gt:sling-context"],
                ephemeral=True,
                dependencies=edges(f"ctx-{name}", name, sort="tracks"),
                **more,
            )
        )

    def _write(self) -> None:
        """A list, an envelope, or one bead a line, at times with a last line that was not finished.

        Without contexts the order of the list decides; with them beads may stand anywhere.
        """
        draw = self.random
        if self.deferred:
            draw.shuffle(self.rows)
        shape = draw.choice(("lines", "list", "envelope"))
        if shape == "lines":
            ends = draw.choice(("\n", "\r\n"))
            text = ends.join(json.dumps(row, ensure_ascii=draw.random() < 0.5) for row in self.rows)
            text += ends + ('{"id": "wb-half", "ti' if draw.random() < 0.3 else "")
        else:
            whole: Any = self.rows if shape == "list" else {"schema_version": 1, "data": self.rows}
            text = json.dumps(whole)
        (self.folder / "issues.jsonl").write_bytes(text.encode())
