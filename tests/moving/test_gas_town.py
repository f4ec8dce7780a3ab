"""Gas Town: a town that is moved dispatches what its own scheduler would dispatch."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairlane.engine.end_attempt import Report
from fairlane.intake.sources.base import Where
from fairlane.model.instant import SECOND
from fairlane.service import queue, tasks
from fairlane.service.conversion import operation
from fairlane.service.reports.listing import list_tasks
from fairlane.service.sync import importing
from fairlane.service.sync.importing import ImportOptions
from tests import holder
from tests.acceptance.commands import fairlane
from tests.conformance.samples.beads import bead, edges
from tests.moving.gas_town import HEARTBEAT_SECONDS, Context, Town
from tests.moving.test_sling import sling
from tests.unit.contexts import NOON, TestContext
from tests.waiting import until

pytestmark = pytest.mark.slow


class Moved:
    """A town, and a home that it was moved to."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.town = Town(folder / "town", seed, NOON)
        self.there, self.random = self.town.scheduler, Random(seed + 1)
        self.office = TestContext(folder)
        self.leases: dict[str, str] = {}  # task -> lease
        operation.write(self.context, "gastown", str(self.town.folder))
        where = Where(self.town.folder / "issues.jsonl")
        self.answer = importing.bring_in(self.context, "beads", where, ImportOptions())
        if not self.there.deferred:  # direct mode has no contexts: all that is open was slung
            names = enumerate(row["id"] for row in self.answer["created"])
            self.there.contexts = {name: Context(name, 0, id=f"{at:03}") for at, name in names}
        named = {row["id"] for key in ("created", "skipped") for row in self.answer[key]}
        assert named >= {
            row["id"] for row in self.there.beads.values() if row["issue_type"] != "epic"
        }

    @property
    def context(self) -> Any:
        return self.office.context

    @property
    def now(self) -> int:
        return self.office.clock.at

    def statuses(self) -> dict[str, str]:
        return {row["id"]: row["status"] for row in list_tasks(self.context)["tasks"]}

    def heartbeat(self) -> None:
        """Both dispatch; some of it cannot be started."""
        expected = self.there.plan(self.now)
        found = holder.lease(self.context, None, "w", ())["leases"]
        assert [row["task"] for row in found] == expected
        for row in found:
            name, lease = row["task"], row["lease"]
            if self.random.random() < 0.3:
                holder.release(self.context, lease, "launch_failed", Report(detail="no session"))
                self.there.not_dispatched(name)
            else:
                self.leases[name] = lease
                self.there.dispatched(name)
        parked = {name for name, status in self.statuses().items() if status == "parked"}
        assert parked == self.there.broken.keys()

    def between(self) -> None:
        """Until the next heartbeat somebody is done, pauses, resumes, or slings again."""
        deeds = (self.complete, self.complete, self.pause, self.sling)
        for _ in range(self.random.randint(0, 3)):
            self.random.choice(deeds)()
        for lease in self.leases.values():
            holder.heartbeat(self.context, lease)
        self.office.wait(HEARTBEAT_SECONDS * SECOND)

    def complete(self) -> None:
        if self.leases:
            name = self.random.choice(sorted(self.leases))
            holder.complete(self.context, [self.leases.pop(name)])
            self.there.closed(name)

    def pause(self) -> None:
        change = queue.resume if self.there.paused else queue.pause
        change(self.context)
        self.there.paused = not self.there.paused

    def sling(self) -> None:
        if self.there.broken:
            name = self.random.choice(sorted(self.there.broken))
            tasks.retry(self.context, [name])
            self.there.retried(name)


@pytest.mark.parametrize("seed", range(40))
def test_a_town_goes_on_as_there(tmp_path: Path, seed: int) -> None:
    moved = Moved(tmp_path, seed)
    assert {row["id"] for row in moved.answer["parked"]} == moved.there.broken.keys()
    for _ in range(12):
        moved.heartbeat()
        moved.between()


def home_of(folder: Path, agent: str) -> Path:
    """A home whose agent is a program of ours, whatever the town has."""
    home = folder / "home"
    home.mkdir()
    (home / "fairlane.toml").write_text(
        f'agent = "own"\n[agents.own]\nargv = ["sh", "-c", {json.dumps(agent)}]\n'
    )
    return home


def town_of(folder: Path, scheduler: dict[str, Any], *rows: dict[str, Any]) -> Path:
    town = folder / "town"
    for name, document in (
        ("settings/config.json", {"type": "town-settings", "scheduler": scheduler}),
        ("mayor/rigs.json", {"rigs": {"web": {"beads": {"prefix": "gt"}}}}),
    ):
        (town / name).parent.mkdir(parents=True)
        (town / name).write_text(json.dumps(document))
    (town / "issues.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return town


@pytest.mark.timeout(120)
def test_in_direct_mode_all_start_at_once(tmp_path: Path) -> None:
    """Each of twelve ends only when all twelve have started."""
    marks = tmp_path / "marks"
    marks.mkdir()
    all_here = f'[ $(ls "{marks}" | wc -l) = 12 ]'
    wait = f'touch "{marks}/$FAIRLANE_TASK"; until {all_here}; do sleep 0.05; done'
    home = home_of(tmp_path, wait)
    town = town_of(tmp_path, {}, *(bead(f"gt-{at}", f"Bead {at}") for at in range(12)))

    def ask(*words: str) -> Any:
        said = fairlane("--home", home, "--json", *words)
        assert said.code == 0, said
        return said.document

    ask("convert", "gastown", str(town), "--write")
    ask("up", "--detach", "--no-server")
    try:
        ask("import", "beads", str(town / "issues.jsonl"))
        until(lambda: {row["status"] for row in ask("list")["tasks"]} == {"done"})
    finally:
        fairlane("--home", home, "down")
    rows = ask("list")["tasks"]
    assert [(row["project"], row["attempts"]) for row in rows] == [("web", 1)] * 12


@pytest.mark.timeout(120)
def test_a_town_is_moved_and_runs_to_the_end(tmp_path: Path) -> None:
    """What is slung is done, in the order of its needs; what is broken is parked."""
    log = tmp_path / "log"
    home = home_of(tmp_path, f'echo "$FAIRLANE_TASK" >> "{log}"')
    town = town_of(
        tmp_path, {"max_polecats": 2, "batch_size": 3},
        bead("gt-a", "First"), bead("gt-b", "Second", dependencies=edges("gt-b", "gt-a")),
        bead("gt-c", "Nobody slung it"), bead("gt-d", "Broken"),
        sling("gt-a"), sling("gt-b"),
        sling("gt-d", "closed", "circuit-broken", dispatch_failures=3, last_failure="no tmux"),
    )  # fmt: skip

    def ask(*words: str) -> Any:
        said = fairlane("--home", home, "--json", *words)
        assert said.code == 0, said
        return said.document

    ask("convert", "gastown", str(town), "--write")
    ask("policy", "set", "cycle.interval=1s")  # a heartbeat of a second
    answer = ask("import", "beads", str(town / "issues.jsonl"))
    assert [row["id"] for row in answer["skipped"]] == ["gt-c"]
    ask("run", "--until-idle")
    rows = {row["id"]: row for row in ask("list")["tasks"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "gt-a": "done", "gt-b": "done", "gt-d": "parked",
    }  # fmt: skip
    assert rows["gt-d"]["reason"] == "circuit-broken: no tmux"
    assert log.read_text().split() == ["gt-a", "gt-b"]
    ask("retry", "gt-d")
    ask("run", "--until-idle")
    assert log.read_text().split() == ["gt-a", "gt-b", "gt-d"]
