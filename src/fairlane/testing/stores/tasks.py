"""Cases: a task comes back as it was put."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from fairlane.model.errors import Refused
from fairlane.model.task import Check, Status, Task
from fairlane.store.base import Filter, Placed, Store
from fairlane.testing.stores.builders import change, ended, ids, put, ready, save, task, waits

SAID: dict[str, Any] = {
    "project": "harbour",
    "kind": "review",
    "title": "Größe prüfen 🛟",
    "prompt": 'line one\n\tline "two" \\ — 終わり\x00.',
    "template": "strict",
    "base": "main",
    "merge": "pr",
    "session": "fresh",
    "carry": "needs",
    "context": "needs",
    "checks": (Check("make test", ("make", "test"), 90_000_000), Check("é", ("lint", ""))),
    "no_checks": True,
    "agent": "claude",
    "command": ("sh", "-c", "echo 'a b'", ""),
    "priority": -3,
    "parent": "root",
    "needs": ("n2", "n1"),
    "artifacts": ("out/a.txt", "é.md"),
    "group": "spring",
    "parallel": False,
    "locks": ("db", "cache"),
    "workspace": "w-1",
    "pool": "team",
    "labels": ("gpu", "os=linux"),
    "estimate_tokens": 0,
    "timeout": 90_000_000,
    "max_attempts": 5,
    "not_before": 1_700_000_000_123_456,
    "vars": {"name": "Ω", "empty": ""},
    "env": {"TOKEN": "s=1;\n2"},
    "meta": {"a": [1, 2.5, None, True, {"b": []}], "": {"deep": {"er": "x"}}, "n": -(1 << 60)},
    "created_at": 1_700_000_000_000_001,
    "ready_since": 1_700_000_000_000_002,
    "depth": 3,
}
HAPPENED: dict[str, Any] = {
    "failures": 2,
    "attempts": 9,
    "launch_failures": 1,
    "setbacks": 4,
    "releases": 5,
    "check_rounds": 2,
    "half_opened": True,
    "backoff_until": 1_700_000_000_000_003,
    "parked_at": 1_700_000_000_000_004,
    "lost_fence": 77,
    "reason": "failed: exit 1 (attempt 2 of 2) – „ende“",
    "stop_requested": "timeout",
    "artifacts_missing": ("é.md",),
    "source_hold": "blocked by item seven",
    "paused": True,
}


class TaskCases:
    """Insert, save, rewrite."""

    def test_the_cases_name_every_field(self) -> None:
        rest = {"id", "seq", "status", "ended_at", "lease"}
        assert {each.name for each in fields(Task)} == set(SAID) | set(HAPPENED) | rest

    def test_every_field_that_is_inserted_comes_back(self, store: Store) -> None:
        whole = waits("whole", 7, "source", 12, **SAID, **HAPPENED)
        plain = ready("plain", 8)
        put(store, whole, plain)
        with store.read() as reading:
            assert reading.placed("whole") == whole
            assert reading.task("whole") == whole.task
            assert reading.placed("plain") == plain
            assert reading.tasks(["plain", "whole", "none"]) == {
                "plain": plain.task,
                "whole": whole.task,
            }
            assert reading.listing(Filter()) == [whole, plain]
            assert reading.task("none") is None
            assert reading.placed("none") is None

    def test_every_field_alone_comes_back(self, store: Store) -> None:
        for seq, (name, value) in enumerate((SAID | HAPPENED).items(), 1):
            one = waits(f"t{seq}", seq, "paused", **{name: value})
            put(store, one)
            with store.read() as reading:
                assert reading.placed(one.task.id) == one, name

    def test_nothing_and_empty_are_told_apart(self, store: Store) -> None:
        empty = waits("empty", 1, "artifact", 0, parallel=False, template="", estimate_tokens=0)
        nothing = waits("nothing", 2, "artifact", None, parallel=None, template=None)
        put(store, empty, nothing)
        with store.read() as reading:
            for name in ("parallel", "template", "estimate_tokens", "needs", "vars", "meta"):
                for each in (empty, nothing):
                    found = reading.task(each.task.id)
                    assert getattr(found, name) == getattr(each.task, name), name
            found = reading.task("nothing")
            assert found is not None
            assert (found.needs, found.locks, found.command, found.labels) == ((), (), (), ())
            assert reading.placed("empty") == empty

    def test_a_long_prompt_comes_back(self, store: Store) -> None:
        long = ready("long", 1, prompt="ä" * (1 << 20))
        put(store, long)
        with store.read() as reading:
            assert reading.task("long") == long.task

    def test_what_has_happened_is_saved(self, store: Store) -> None:
        put(store, ready("a", 1, **SAID), ready("b", 2))
        now = {"created_at": 5, "ready_since": 6}
        for status, more in (
            (Status.QUEUED, {}),
            (Status.PARKED, {}),
            (Status.CANCELED, {"ended_at": 9}),
            (Status.DONE, {"ended_at": 10}),
        ):
            facts = SAID | HAPPENED | now | more
            code = "paused" if status is Status.QUEUED else ""
            saved = Placed(task("a", 1, status=status, **facts), code, 44)
            save(store, saved)
            with store.read() as reading:
                assert reading.placed("a") == saved
                assert reading.placed("b") == ready("b", 2)

    def test_what_has_happened_can_be_taken_back(self, store: Store) -> None:
        put(store, waits("a", 1, "paused", 5, **SAID, **HAPPENED))
        saved = ready("a", 1, **SAID)
        save(store, saved)
        with store.read() as reading:
            assert reading.placed("a") == saved

    def test_what_a_task_says_is_rewritten(self, store: Store) -> None:
        put(store, ready("a", 1), ready("b", 2, **SAID))
        put(store, ready("x", 3, project="harbour"))
        said, silent = waits("a", 1, "parent", **SAID, **HAPPENED), ready("b", 2)
        with store.write() as writing:
            writing.save([said, silent], content=True)
        with store.read() as reading:
            assert reading.placed("a") == said
            assert reading.placed("b") == silent

    def test_an_id_is_unique(self, store: Store) -> None:
        put(store, ready("a", 1, title="first"))
        with pytest.raises(Refused):
            put(store, ready("b", 2), ready("a", 3, title="second"))
        with store.read() as reading:
            assert ids(reading.listing(Filter())) == ["a"]
            held = reading.task("a")
            assert held is not None
            assert held.title == "first"

    def test_a_seq_is_unique(self, store: Store) -> None:
        put(store, ready("a", 1))
        with pytest.raises(Refused):
            put(store, ready("b", 1))
        with store.read() as reading:
            assert reading.task("b") is None

    def test_ids_differ_by_case(self, store: Store) -> None:
        put(store, ready("a", 1), ready("A", 2))
        with store.read() as reading:
            assert reading.statuses(["A", "a"]) == {"A": Status.QUEUED, "a": Status.QUEUED}

    def test_an_unknown_task_cannot_be_saved(self, store: Store) -> None:
        with pytest.raises(Refused):
            save(store, ready("a", 1))

    def test_a_task_needs_a_known_project(self, store: Store) -> None:
        with pytest.raises(Refused), store.write() as writing:
            writing.insert([ready("a", 1, project="nobody")])

    def test_what_must_never_be_true_is_refused(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a)
        for wrong in (
            change(a, ready_since=None),
            change(a, status=Status.DONE),
            change(a, ended_at=3),
            Placed(replace(a.task, status=Status.PARKED), "needs"),
        ):
            with pytest.raises(Refused):
                save(store, wrong)
        with store.read() as reading:
            assert reading.placed("a") == a

    def test_statuses_of_many(self, store: Store) -> None:
        many = [ready(f"t{seq}", seq) for seq in range(1, 1301)]
        put(store, *many, ended("done", 2000, 5))
        with store.read() as reading:
            asked = [*(placed.task.id for placed in many), "done", "none"]
            found = reading.statuses(asked)
            assert len(found) == 1301
            assert found["done"] is Status.DONE
            assert "none" not in found
            assert len(reading.tasks(asked)) == 1301
