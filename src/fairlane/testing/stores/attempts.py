"""Cases: attempts, open and ended, and what estimates see of them."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.errors import Refused
from fairlane.model.project import History
from fairlane.model.record import replace
from fairlane.model.task import Attempt
from fairlane.store.base import HistoryRow, Store
from fairlane.testing.stores.builders import attempt, end, put, ready, start

WHOLE: dict[str, Any] = {
    "worker": None, "estimate": 5, "weight": 3, "charged": 9, "workspace": "w", "started_at": 7,
    "ended_at": 8, "outcome": "failed", "detail": "exit 1 – ü", "tokens": (1, 2, 3, 4), "usd": 0,
    "host": "h", "handle": "42 123.5", "executor": "process", "direct": True,
    "session": "s", "note": "half\ndone", "result": {"ok": [1, None, {"x": "é"}]},
    "work": {"head": "abc", "files": [{"path": "é"}]}, "checks": ({"name": "make test"},),
}  # fmt: skip


class AttemptCases:
    """By lease, by task, by time."""

    def test_every_field_comes_back(self, store: Store) -> None:
        a = ready("a", 1, attempts=9, agent="codex")
        put(store, a)
        plain, whole = attempt(a, 1, ended_at=3), attempt(a, 2, **WHOLE)
        row = attempt(a, 3)
        with store.write() as writing:
            writing.put_attempts([plain, whole, row])
        with store.read() as reading:
            assert [reading.attempt(lease) for lease in ("l1", "l2", "l3", "no")] == [
                plain,
                whole,
                row,
                None,
            ]
            assert reading.attempts("a") == [plain, whole, row]
            assert reading.attempts("none") == []

    def test_an_attempt_is_replaced_by_its_lease(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a)
        _, row = start(store, a)
        now = replace(row, **WHOLE)
        with store.write() as writing:
            writing.put_attempts([now])
        with store.read() as reading:
            assert reading.attempts("a") == [now]
            assert reading.open_attempts() == []

    def test_open_attempts_by_fence(self, store: Store) -> None:
        tasks = [ready(name, seq) for seq, name in enumerate("abc", 1)]
        put(store, *tasks)
        made = [start(store, placed)[1] for placed in reversed(tasks)]
        with store.read() as reading:
            assert reading.open_attempts() == made
        with store.write() as writing:
            writing.put_attempts([end(made[1], 5)])
            assert writing.open_attempts() == [made[0], made[2]]

    def test_a_task_has_one_holder(self, store: Store) -> None:
        a = ready("a", 1, attempts=5)
        put(store, a)
        _, row = start(store, a)
        with pytest.raises(Refused), store.write() as writing:
            writing.put_attempts([attempt(a, 9)])
        with store.write() as writing:
            writing.put_attempts([end(row, 5), attempt(a, 10)])
        with store.read() as reading:
            assert [other.lease for other in reading.open_attempts()] == ["l10"]

    def test_a_fence_is_given_once(self, store: Store) -> None:
        a, b = ready("a", 1), ready("b", 2)
        put(store, a, b)
        _, row = start(store, a)
        with pytest.raises(Refused), store.write() as writing:
            writing.put_attempts([attempt(b, row.fence, lease="other")])
        with store.read() as reading:
            assert reading.attempt(row.lease) == row

    def test_an_attempt_is_of_a_known_task_and_ends_with_an_outcome(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a)
        for wrong in (
            attempt(ready("x", 2), 1),
            attempt(a, 1, ended_at=4, outcome=None),
            attempt(a, 1, outcome="failed"),
        ):
            with pytest.raises(Refused), store.write() as writing:
                writing.put_attempts([wrong])

    def test_ended_attempts_the_newest_first(self, store: Store) -> None:
        a, b = ready("a", 1, title="A"), ready("b", 2)
        put(store, a, b)
        made = [
            attempt(a, 1, ended_at=50),
            attempt(b, 2, ended_at=40),
            attempt(a, 3, ended_at=60),
            attempt(b, 4, ended_at=60, work={"files": ["x"]}, note="é"),
            attempt(b, 5),
        ]
        with store.write() as writing:
            writing.put_attempts(made)
        with store.read() as reading:
            rows = reading.ended_attempts(0, 10)
            assert (rows[0][0].work, rows[0][0].note) == (None, "é")  # records are long
            assert [row.fence for row, _ in rows] == [4, 3, 1, 2]
            assert [of.id for _, of in rows] == ["b", "a", "a", "b"]
            assert rows[1][1].title == "A"
            assert [row.fence for row, _ in reading.ended_attempts(50, 10)] == [4, 3, 1]
            assert [row.fence for row, _ in reading.ended_attempts(0, 2)] == [4, 3]

    def test_recent_attempts_that_used_anything(self, store: Store) -> None:
        a, b = ready("a", 1, agent="codex"), ready("b", 2)
        put(store, a, b)
        made = [
            attempt(a, 1, ended_at=10, tokens=(1, 0, 0, 0), usd=4),
            attempt(a, 2, ended_at=30, tokens=(0, 0, 3, 0)),
            attempt(a, 3, ended_at=20, tokens=(0, 2, 0, 0), usd=0),
            attempt(a, 4, ended_at=40),
            attempt(b, 5, ended_at=50, tokens=(0, 0, 0, 9)),
            attempt(b, 6, tokens=(7, 7, 7, 7)),
        ]
        with store.write() as writing:
            writing.put_attempts(made)
        with store.read() as reading:
            assert reading.recent("default", "code", "codex", 2) == [
                HistoryRow("default", "code", "codex", (0, 0, 3, 0), None),
                HistoryRow("default", "code", "codex", (0, 2, 0, 0), 0),
            ]
            assert len(reading.recent("default", "code", "codex", 9)) == 3
            assert reading.recent("default", "code", None, 9) == [
                HistoryRow("default", "code", None, (0, 0, 0, 9), None)
            ]
            assert reading.recent("default", "spec", None, 9) == []

    def test_late_usage_is_seen(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a)
        _, held = start(store, a)
        late: list[Attempt] = [end(held, 9), end(held, 9, "succeeded", tokens=(4, 0, 0, 0))]
        for each in late:
            with store.write() as writing:
                writing.put_attempts([each])
        with store.read() as reading:
            assert [row.tokens for row in reading.recent("default", "code", None, 5)] == [
                (4, 0, 0, 0)
            ]

    def test_history_is_kept_by_what_it_is_about(self, store: Store) -> None:
        rows = [
            History("p", "code", None, 10, 20, 30),
            History("p", "code", "codex", 1),
            History("a", "spec", "codex", 2),
        ]
        with store.write() as writing:
            writing.put(*rows)
            writing.put(replace(rows[1], estimate=8))
        with store.read() as reading:
            by_key = {
                (row.project, row.kind, row.agent): row for row in reading.table(History).values()
            }
            assert len(reading.table(History).values()) == 3
            assert by_key["p", "code", None] == rows[0]
            assert by_key["p", "code", "codex"].estimate == 8
