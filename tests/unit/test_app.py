"""Wiring: a home folder becomes a context, and the verbs are methods."""

from __future__ import annotations

import pytest

from fairlane.app import Fairlane, default_home, open_context, open_store
from fairlane.clock import FixedClock
from fairlane.model.errors import Invalid
from tests.unit.contexts import NOON


def test_a_home_folder_is_made_for_its_owner_alone(tmp_path):
    home = tmp_path / "a" / "home"
    context = open_context(home)
    context.store.close()
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "fairlane.db").stat().st_mode & 0o777 == 0o600


def test_where_home_is(monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRLANE_HOME", str(tmp_path / "told"))
    assert default_home() == tmp_path / "told"
    monkeypatch.delenv("FAIRLANE_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_home() == tmp_path / "fairlane"


def test_which_store(tmp_path):
    (tmp_path / "fairlane.toml").write_text(f'store.url = "sqlite:{tmp_path}/set.db"')
    open_context(tmp_path).store.close()
    open_context(tmp_path, f"sqlite:{tmp_path}/told.db").store.close()
    assert (tmp_path / "set.db").exists()
    assert (tmp_path / "told.db").exists()
    assert not (tmp_path / "fairlane.db").exists()


@pytest.mark.parametrize("url", ["nonsense", "sqlite:", "mysql://x", "/tmp/x.db"])
def test_a_url_that_names_no_store_is_refused(url):
    with pytest.raises(Invalid, match="not the URL of a store") as refused:
        open_store(url)
    assert "sqlite:PATH" in refused.value.hint


def test_a_home_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(Invalid, match="no home folder"):
        open_context(tmp_path / "file" / "home")


def test_the_actor_is_the_task_when_an_attempt_calls(monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRLANE_TASK", "t7")
    with Fairlane(tmp_path) as queue:
        assert queue.context.actor == "task:t7"


def test_a_life_through_the_methods(tmp_path):
    with Fairlane(tmp_path, clock=FixedClock(NOON)) as queue:
        queue.add_project("web", weight=2)
        queue.set_project("web", weight=3)
        queue.add("Fix the build", project="web", id="a")
        queue.add({"id": "b", "needs": ["a"]})
        queue.add([{"id": "c"}, {"id": "d"}], chain=True, group="g")
        assert [pick["task"] for pick in queue.plan()["picks"]] == ["a", "c"]
        assert queue.why("b")["holds"][0]["code"] == "needs"
        queue.pause("group:g")
        lease = queue.lease(1, worker="box")["leases"][0]
        assert lease["prompt"] == "Fix the build"
        assert queue.heartbeat(lease["lease"])["status"] == "running"
        queue.report(lease["lease"], tokens=10, note="halfway")
        done = queue.complete(lease["lease"], tokens={"input": 5, "output": 20}, cost=0.25)
        assert done["status"] == "done"
        queue.release(queue.lease()["leases"][0]["lease"], "failed", reason="exit 1")
        queue.retry("b")
        queue.edit("b", priority=1)
        queue.resume("group:g")
        queue.cancel("d")
        assert queue.reclaim()["reclaimed"] == []
        assert [row["status"] for row in queue.list()["tasks"]] == [
            "done", "queued", "queued", "canceled",
        ]  # fmt: skip
        assert queue.show("a")["attempts"][0]["usd"] == 0.25
        assert queue.status()["queued"]["total"] == 2
        assert queue.summary()["done"]["count"] == 1
        assert queue.stats()["throughput"]["done"] == 1
        assert queue.clear(dry_run=True)["count"] == 2
        assert [row["name"] for row in queue.groups()["groups"]] == ["g"]
        assert queue.workers()["workers"][0]["name"] == "box"
        assert queue.pools()["pools"]
        queue.clear()
        assert queue.remove_project("web")["archived"] is True
        assert len(queue.projects()["projects"]) == 2


def test_an_unknown_counter_is_named(tmp_path):
    with Fairlane(tmp_path) as queue, pytest.raises(Invalid, match="no counter 'outptu'"):
        queue.complete("L1", tokens={"outptu": 1})


def test_work_outlives_the_process(tmp_path):
    with Fairlane(tmp_path) as queue:
        queue.add("x", id="a")
    with Fairlane(tmp_path) as queue:
        assert queue.show("a")["task"]["prompt"] == "x"


def test_work_is_imported_through_methods(tmp_path):
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"id": "a", "title": "A"}\n{"id": "b", "title": "B"}\n')
    with Fairlane(tmp_path / "home") as queue:
        assert queue.import_from("jsonl", file, "a", dry_run=True)["import"] is None
        created = queue.import_from("jsonl", str(file), "a", group="g")["created"]
        assert created == [{"id": "a", "project": "default", "group": "g"}]
        assert [row["id"] for row in queue.undo()["canceled"]] == ["a"]
