"""cool-workflow: converted and imported, the queue goes on as its own scheduler would."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairlane.clock import SystemClock
from fairlane.engine.end_attempt import Report
from fairlane.intake.sources.base import Where
from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND
from fairlane.service import planning, pull, tasks
from fairlane.service.conversion import operation
from fairlane.service.reports.listing import list_tasks
from fairlane.service.sync import importing
from fairlane.service.sync.importing import ImportOptions
from tests import holder
from tests.acceptance.commands import fairlane
from tests.moving.cool_workflow import Registry, moment
from tests.unit.contexts import TestContext
from tests.waiting import until

pytestmark = pytest.mark.slow

#: Their reason for leaving an entry out -> the code of what holds its task here.
CODES = {
    "concurrency-ceiling": ("cap", "cap_zero", "no_slot"),
    "backoff": ("backoff", "not_before"),
}
STATUSES = {"leased": ("leased",), "parked": ("parked",), "terminal": ("done", "canceled")}


class Moved:
    """A registry of theirs, and a home that it was moved to."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.registry = Registry(folder / "registry", seed)
        self.sched, self.random = self.registry.sched, Random(seed + 1)
        self.office = TestContext(folder)
        self.leases: dict[str, str] = {}  # task -> lease
        self.given: set[str] = set()  # tasks that were given back
        document = operation.write(self.context, "cool-workflow", str(folder / "registry"))
        assert document["unknown"] == []
        where = Where(folder / "registry" / "queue.json")
        self.answer = importing.bring_in(self.context, "queue.json", where, ImportOptions())
        #: Over before it was moved: it has no task.
        self.over = {
            name
            for name, entry in self.sched.entries.items()
            if entry.status in ("drained", "cancelled")
        }

    @property
    def context(self) -> Any:
        return self.office.context

    @property
    def now(self) -> int:
        return self.office.clock.at

    def agree(self) -> None:
        """Both would start the same, in the same order, and say the same of the rest."""
        leases, skipped = self.sched.plan(self.now)
        document = planning.plan(self.context)
        assert [pick["task"] for pick in document["picks"]] == leases
        rows = {row["id"]: row for row in list_tasks(self.context)["tasks"]}
        for name, reason in skipped.items():
            if name in self.over:
                assert name not in rows
            elif reason in STATUSES:
                assert rows[name]["status"] in STATUSES[reason], (name, reason)
            else:
                hold = rows[name]["hold"]
                assert hold is not None
                assert hold["code"] in CODES[reason], (name, reason)
        for name, row in rows.items():
            if row["status"] != "done":  # a success clears the count here
                assert row["failures"] == self.sched.entries[name].attempts, name

    def step(self) -> None:
        """Something happens, to both."""
        deeds = (
            self.lease,
            self.lease,
            self.complete,
            self.fail,
            self.fail,
            self.give_back,
            self.reset,
            self.pass_,
        )
        self.random.choice(deeds)()

    def lease(self) -> None:
        limit = self.random.randint(1, 3)
        found = holder.lease(self.context, limit, "w", ())["leases"]
        assert [row["task"] for row in found] == self.sched.lease(self.now, limit)
        self.leases |= {row["task"]: row["lease"] for row in found}

    def complete(self) -> None:
        if self.leases:
            name = self.random.choice(sorted(self.leases))
            holder.complete(self.context, [self.leases.pop(name)])
            self.sched.complete(name)

    def fail(self) -> None:
        if self.leases:
            name = self.random.choice(sorted(self.leases))
            holder.release(self.context, self.leases.pop(name), "failed", Report(detail="exit 1"))
            self.sched.fail(name, self.now)

    def give_back(self) -> None:
        """Untouched; twice in a row would wait a moment here."""
        names = sorted(self.leases.keys() - self.given)
        if names:
            name = self.random.choice(names)
            self.given.add(name)
            holder.release(self.context, self.leases.pop(name))
            self.sched.entries[name].status = "ready"

    def reset(self) -> None:
        parked = sorted(name for name, row in self.sched.entries.items() if row.status == "parked")
        if parked:
            name = self.random.choice(parked)
            tasks.retry(self.context, [name])
            self.sched.reset(name)

    def pass_(self) -> None:
        """Time passes; leases that run out are reclaimed."""
        self.office.wait(self.random.choice((250, 1000, 1500, 4000)) * 1000)
        gone = pull.reclaim(self.context)["reclaimed"]
        assert sorted(gone) == sorted(self.sched.reclaim(self.now))
        for name in gone:
            self.leases.pop(name)


@pytest.mark.parametrize("seed", range(25))
def test_the_queue_goes_on_as_there(tmp_path: Path, seed: int) -> None:
    moved = Moved(tmp_path, seed)
    bad = {row["id"] for row in moved.answer["skipped"]} - moved.over
    assert bad == set(moved.registry.bad)
    moved.agree()
    for _ in range(30):
        moved.step()
        moved.agree()


def test_a_failed_release_uses_up_an_attempt(tmp_path: Path) -> None:
    office = TestContext(tmp_path)
    office.add({"id": "a", "prompt": "x"})
    (lease,) = office.lease()
    with pytest.raises(Invalid, match="contradict"):
        pull.release(office.context, lease["lease"], failed=True, outcome="throttled")
    pull.release(office.context, lease["lease"], failed=True, reason="exit 1")
    (row,) = list_tasks(office.context)["tasks"]
    assert (row["status"], row["failures"]) == ("queued", 1)


POLICY = {
    "schemaVersion": 1, "maxConcurrent": 2, "maxAttempts": 2, "leaseTtlMs": 60_000,
    "backoffBaseMs": 100, "backoffFactor": 2, "backoffCapMs": 200,
}  # fmt: skip


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, "id": name, "repo": "/srv/site", "status": "pending", **more}


def queue_of(folder: Path, *entries: dict[str, Any]) -> Path:
    registry = folder / "registry"
    registry.mkdir()
    (registry / "scheduling-policy.json").write_text(json.dumps(POLICY))
    file = registry / "queue.json"
    file.write_text(json.dumps({"schemaVersion": 1, "entries": entries}, indent=2))
    return file


def statuses(file: Path) -> dict[str, str]:
    return {row["id"]: row["status"] for row in json.loads(file.read_text())["entries"]}


def live(home: Path, file: Path, agent: str = "") -> None:
    """The settings of a home that keeps the file up to date."""
    text = f'[[source]]\ntype = "queue.json"\npath = "{file}"\nwrite_back = true\n'
    (home / "fairlane.toml").write_text(agent + text)


def test_the_file_follows_pulled_work_without_a_daemon(tmp_path: Path) -> None:
    file, home = queue_of(tmp_path, entry("q-1"), entry("q-2", note="Second")), tmp_path / "home"
    home.mkdir()
    live(home, file)

    def ask(*words: str) -> Any:
        return fairlane("--home", home, "--json", *words).document

    ask("convert", "cool-workflow", str(file.parent), "--write")
    ask("sync")
    rows = ask("lease", "--worker", "w")["leases"]
    leases = {row["task"]: row["lease"] for row in rows}
    assert rows[0]["meta"]["repo"] == "/srv/site"
    assert statuses(file) == {"q-1": "leased", "q-2": "leased"}
    ask("complete", leases["q-1"])
    assert statuses(file) == {"q-1": "drained", "q-2": "leased"}
    ask("release", leases["q-2"], "--failed", "--reason", "exit 1")
    second = json.loads(file.read_text())["entries"][1]
    assert (second["status"], second["attempts"]) == ("ready", 1)
    assert "nextEligibleAt" in second
    assert ask("sync")["sources"][0]["conflicts"] == []  # what was written here is no news
    ask("retry", "q-2")
    lease = ask("lease", "--worker", "w")["leases"][0]["lease"]
    ask("release", lease, "--failed", "--reason", "exit 1")
    ask("retry", "q-2")
    assert statuses(file)["q-2"] == "ready"


@pytest.mark.timeout(120)
def test_a_home_is_moved_and_runs_to_the_end(tmp_path: Path) -> None:
    """Good ones end drained, a bad one is parked past its budget, and the file says so."""
    good = [entry(f"q-{at}", note="Do it.", priority=at % 3) for at in range(6)]
    parked = entry("q-parked", status="parked", parkedReason="exit 9", attempts=2)
    over = entry("q-over", status="drained", drainedAt=moment(0))
    soon = moment(SystemClock().now() + 3 * SECOND)  # its holder is gone
    lost = entry("q-lost", status="leased", leaseId="x", leaseExpiresAt=soon, note="Do it.")
    file = queue_of(tmp_path, *good, entry("q-bad", note="FAIL"), parked, over, lost)
    home = tmp_path / "home"
    home.mkdir()
    script = "grep -q FAIL && exit 1; exit 0"
    live(home, file, f'agent = "own"\n[agents.own]\nargv = ["sh", "-c", {json.dumps(script)}]\n')

    def ask(*words: str) -> Any:
        said = fairlane("--home", home, "--json", *words)
        assert said.code == 0, said
        return said.document

    ask("convert", "cool-workflow", str(file.parent), "--write")
    ask("up", "--detach", "--no-server")
    try:
        want = {row["id"]: "drained" for row in (*good, over, lost)}
        until(lambda: statuses(file) == want | {"q-bad": "parked", "q-parked": "parked"})
        rows = {row["id"]: row for row in json.loads(file.read_text())["entries"]}
        assert (rows["q-bad"]["attempts"], rows["q-parked"]["parkedReason"]) == (2, "exit 9")
        assert "attempt 2 of 2" in rows["q-bad"]["parkedReason"]
        ask("retry", "q-parked")
        until(lambda: statuses(file)["q-parked"] == "drained")
    finally:
        fairlane("--home", home, "down")
