"""Write-back: what became of items is told to their source, once, whatever happens between."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlane.intake.sources import cards, source_named
from fairlane.intake.sources.base import Found, Where, WriteBack
from fairlane.model.errors import Refused, TryLater
from fairlane.service import tasks
from fairlane.service.sync import write_back
from fairlane.service.sync.mapping import remember, source_key
from tests import holder
from tests.unit.contexts import TestContext

CARD = "---\nowner: ann\nagent_flow: code\nagent_status:\n---\n# Mend the fence\n"


class Farm:
    """A folder of cards whose tasks are in the queue."""

    def __init__(self, office: TestContext, folder: Path, names: Sequence[str]) -> None:
        self.office, self.folder, self.where = office, folder, Where(path=folder)
        folder.mkdir()
        for name in names:
            (folder / f"{name}.md").write_text(CARD)
        office.add(*({"id": name, "prompt": "mend", "agent": "shell"} for name in names))
        with office.context.store.write() as tx:
            key = source_key("cards", self.where)
            remember(tx, key, {name: {"task": name, "fields": {}, "failures": 0} for name in names})

    def tell(self, *names: str) -> list[str]:
        found = write_back.tell(self.office.context, "cards", self.where, names or None)
        assert found["failed"] == []
        return list(found["written"])

    def status(self, name: str) -> str:
        lines = (self.folder / f"{name}.md").read_text().splitlines()
        return next(line for line in lines if line.startswith("agent_status")).partition(": ")[2]

    def history(self, name: str) -> list[str]:
        text = (self.folder / f"{name}.md").read_text()
        return [line.rpartition(": ")[2] for line in text.splitlines() if "Fairlane" in line]


@pytest.fixture
def farm(office: TestContext, tmp_path: Path) -> Farm:
    return Farm(office, tmp_path / "cards", ["a", "b"])


def lease(office: TestContext) -> str:
    return str(holder.lease(office.context, 1, "w", ())["leases"][0]["lease"])


def test_a_card_follows_its_task(farm: Farm, office: TestContext) -> None:
    assert farm.tell() == ["a", "b"]
    assert farm.status("a") == "queued"
    held = lease(office)
    assert farm.tell() == ["a"]
    assert (farm.status("a"), farm.status("b")) == ("running", "queued")
    holder.complete(office.context, [held])
    assert farm.tell() == ["a"]
    assert farm.history("a") == ["queued", "running", "succeeded"]


def test_what_was_told_is_not_told_again(farm: Farm, office: TestContext) -> None:
    farm.tell()
    before = (farm.folder / "a.md").stat().st_mtime_ns
    with office.context.store.read() as reading:
        version = reading.mark()
    assert farm.tell() == []
    assert (farm.folder / "a.md").stat().st_mtime_ns == before
    with office.context.store.read() as reading:
        assert reading.mark() == version  # not a single transaction


def test_only_the_tasks_that_changed_are_looked_at(farm: Farm, office: TestContext) -> None:
    assert write_back.untold(office.context, "cards", farm.where) == ["a", "b"]
    assert farm.tell("b", "somebody-else") == ["b"]
    assert write_back.untold(office.context, "cards", farm.where) == ["a"]


def test_the_log_says_which_tasks_changed(farm: Farm, office: TestContext) -> None:
    with office.context.store.read() as reading:
        everything, last = write_back.changed_since(reading, 0)
    assert everything == {"a", "b"}
    tasks.cancel(office.context, ["b"])
    with office.context.store.read() as reading:
        assert write_back.changed_since(reading, last) == ({"b"}, last + 1)
        assert write_back.changed_since(reading, last + 1) == (set(), last + 1)


class Dying:
    """Cards in a process that is killed: before it has written them, or just after."""

    def __init__(self, after: bool) -> None:
        self.after = after

    def read(self, where: Where) -> Found:
        return cards.read(where)

    def write(self, where: Where, told: Sequence[WriteBack]) -> list[str]:
        if self.after:
            cards.write(where, told)
        raise KeyboardInterrupt


@pytest.mark.parametrize("after", [False, True])
def test_what_a_kill_left_is_made_up_for_and_nothing_is_told_twice(
    farm: Farm, office: TestContext, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    farm.tell()
    held = lease(office)
    with monkeypatch.context() as patch:
        patch.setattr(write_back, "source_named", lambda name: Dying(after))
        with pytest.raises(KeyboardInterrupt):
            farm.tell()
    assert farm.status("a") == ("running" if after else "queued")
    holder.complete(office.context, [held])  # the world goes on before anybody looks
    farm.tell()
    assert farm.history("a") == ["queued", "running", "succeeded"]
    assert farm.tell() == []


def test_a_persons_edit_stays(farm: Farm, office: TestContext) -> None:
    farm.tell()
    card = farm.folder / "a.md"
    card.write_text(card.read_text().replace("agent_status: queued", "agent_status: canceled"))
    lease(office)
    assert farm.tell() == []
    assert farm.status("a") == "canceled"
    assert farm.tell() == []  # and it is not tried for ever


class Choosy:
    """A source that cannot be told of some items, or of none."""

    def __init__(self, error: Exception | None, but: str = "") -> None:
        self.error, self.but, self.heard = error, but, list[str]()

    def read(self, where: Where) -> Found:
        return Found()

    def write(self, where: Where, told: Sequence[WriteBack]) -> list[str]:
        names = [each.id for each in told]
        if self.error is not None and (not self.but or self.but in names):
            raise self.error
        self.heard += names
        return names


def test_one_that_cannot_be_told_does_not_keep_the_others(
    farm: Farm, office: TestContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Choosy(Refused("the bead is gone"), "a")
    monkeypatch.setattr(write_back, "source_named", lambda name: source)
    found = write_back.tell(office.context, "cards", farm.where)
    failed = [{"id": "a", "message": "the bead is gone"}]
    assert found == {"written": ["b"], "failed": failed}
    source.error = None
    assert farm.tell() == ["a"]


def test_a_source_that_cannot_be_reached_is_told_everything_later(
    farm: Farm, office: TestContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Choosy(TryLater("bd is not there"))
    monkeypatch.setattr(write_back, "source_named", lambda name: source)
    with pytest.raises(TryLater, match="bd is not there"):
        farm.tell()
    source.error = None
    farm.tell()
    assert source.heard == ["a", "b"]


def test_a_source_without_write_back_says_so(office: TestContext, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="nothing can be written back to jsonl"):
        write_back.tell(office.context, "jsonl", Where(path=tmp_path / "tasks.jsonl"))
    assert source_named("cards") is cards


def test_a_queue_file_hears_of_leases_failures_and_backoff(
    office: TestContext, tmp_path: Path
) -> None:
    file = tmp_path / "queue.json"
    entry = {"schemaVersion": 1, "id": "q-1", "repo": "/r", "status": "pending", "priority": 1}
    file.write_text(json.dumps({"schemaVersion": 1, "entries": [entry]}, indent=2))
    where = Where(path=file)
    office.add({"id": "q-1", "prompt": "go", "agent": "shell"})
    with office.context.store.write() as tx:
        remember(
            tx,
            source_key("queue.json", where),
            {"q-1": {"task": "q-1", "fields": {}, "failures": 0}},
        )

    def told() -> dict[str, Any]:
        write_back.tell(office.context, "queue.json", where)
        found: dict[str, Any] = json.loads(file.read_text())["entries"][0]
        return found

    held = lease(office)
    assert (told()["status"], told()["leaseId"]) == ("leased", held)
    holder.release(office.context, held, "failed")
    after = told()
    assert (after["status"], after["attempts"]) == ("ready", 1)
    assert after["nextEligibleAt"].startswith("2026-01-30T12:0")
    assert "leaseId" not in after


def test_one_card_that_cannot_be_written_does_not_hide_the_others(farm: Farm) -> None:
    (farm.folder / "b.md").chmod(0o444)
    found = write_back.tell(farm.office.context, "cards", farm.where, None)
    assert (found["written"], [row["id"] for row in found["failed"]]) == (["a"], ["b"])
    assert farm.status("a") == "queued"
