"""Pages of a transcript: they go on where the last one ended, also in a log that grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.agents.records import whole_text
from fairlane.app import Fairlane
from fairlane.model.errors import Invalid, NotFound, Refused
from fairlane.model.instant import SECOND, parse_instant
from tests.unit.agents.transcripts import answer, init, result

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
AT = parse_instant("2026-01-30T12:00:00Z")


class World:
    """A task in flight, and its log."""

    def __init__(self, home: Path, agent: str | None = None) -> None:
        self.queue = Fairlane(home)
        self.queue.add("Look", id="a", agent=agent)
        self.lease = self.queue.lease(1, worker="box")["leases"][0]["lease"]
        self.run = home / "runs" / "a" / "1"
        self.run.mkdir(parents=True)

    def print(self, *told: object) -> None:
        with (self.run / "stdout.log").open("ab") as log:
            for each in told:
                line = each if isinstance(each, bytes) else json.dumps(each).encode()
                log.write(line + b"\n")

    def pages(self, limit: int = 1000, **more: Any) -> list[dict[str, Any]]:
        """Every entry, page by page, until there is nothing new."""
        cursor, found = None, []
        while True:
            page = self.queue.transcript("a", cursor=cursor, limit=limit, **more)
            found += page["entries"]
            assert len(page["entries"]) <= limit
            if page["cursor"] == cursor or page["ended"]:
                return [dict(entry) for entry in found]
            cursor = page["cursor"]

    def kinds(self, **more: Any) -> list[tuple[str, str]]:
        return [(entry["kind"], entry["text"]) for entry in self.pages(**more)]


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    with world.queue:
        yield world


def test_it_goes_on_where_it_ended(world):
    assert world.queue.transcript("a")["entries"] == []
    world.print(init(), answer("One"))
    first = world.queue.transcript("a")
    assert [entry["n"] for entry in first["entries"]] == [1, 2]
    assert first["ended"] is False
    with (world.run / "stdout.log").open("ab") as log:
        log.write(json.dumps(answer("Two")).encode())  # without its end
    same = world.queue.transcript("a", cursor=first["cursor"])
    assert (same["entries"], same["cursor"]) == ([], first["cursor"])
    world.print(b"", result("Two"))
    world.queue.complete(world.lease, result={"answer": "Two\x1b[1m", "summary": "Two"})
    last = world.queue.transcript("a", cursor=first["cursor"])
    told = [(entry["n"], entry["kind"], entry["text"]) for entry in last["entries"]]
    assert told == [(3, "said", "Two"), (4, "turn", "ended"), (5, "answer", "Two\\x1b[1m")]
    assert last["entries"][1]["tokens"] == {
        "input": 1000, "output": 50, "cache_read": 300, "cache_write": 200,
    }  # fmt: skip
    assert last["ended"] is True
    again = world.queue.transcript("a", cursor=last["cursor"])
    assert (again["entries"], again["cursor"], again["ended"]) == ([], last["cursor"], True)


def test_the_answer_comes_once_whatever_the_size_of_pages(world):
    world.print(init(), answer("One"), result("One"))
    world.queue.complete(world.lease, result={"answer": "One"})
    for limit in range(1, 6):
        kinds = [kind for kind, _ in world.kinds(limit=limit)]
        assert kinds == ["turn", "said", "turn", "answer"]
    shown = world.queue.show("a")
    assert (shown["answer"], shown["attempts"][0]["result"]) == ("One", {"answer": "One"})
    done = world.queue.summary()["done"]["tasks"][0]
    assert done["answer"] == "One"


@pytest.mark.parametrize("answer", [None, 7, "", {"a": 1}])
def test_what_is_no_answer_is_not_shown(world, answer):
    world.queue.complete(world.lease, result={"answer": answer})
    assert world.kinds() == []
    assert world.queue.show("a")["answer"] is None


def test_answers_are_bounded(world):
    world.queue.complete(world.lease, result={"answer": "\u20ac" * 100_000})
    (entry,) = world.pages()
    assert entry["truncated"]
    assert len(entry["text"].encode()) <= 65536
    assert len((world.queue.show("a")["answer"] or "").encode()) <= 65536
    assert len(world.queue.summary()["done"]["tasks"][0]["answer"] or "") <= 500


@pytest.mark.parametrize(("letters", "cut"), [(65_536, False), (65_537, True)])
def test_an_answer_that_was_cut_says_so(world, letters, cut):
    world.queue.complete(world.lease, result={"answer": whole_text("x" * letters)})
    (entry,) = world.pages()
    assert entry["truncated"] is cut


def test_times_come_from_the_runner(world):
    world.print(init(), answer("One"), answer("Two"))
    second = len(json.dumps(init())) + len(json.dumps(answer("One"))) + 2
    (world.run / "stdout.times").write_text(f"0 {AT}\n{second} {AT + 60 * SECOND}\n")
    at = [entry["at"] for entry in world.pages()]
    assert at == ["2026-01-30T12:00:00Z"] * 2 + ["2026-01-30T12:01:00Z"]
    (late,) = world.pages(since="2026-01-30T12:00:30Z")
    assert (late["n"], late["text"]) == (3, "Two")
    (world.run / "stdout.times").write_text(f"0 {10**30}\n")
    assert [entry["at"] for entry in world.pages()] == [None] * 3


def test_error_output_and_agents_that_are_gone_show_lines(tmp_path):
    world = World(tmp_path, agent="codex")
    with world.queue:
        (world.run / "stderr.log").write_text('{"type": "turn.started"}\n')
        assert world.kinds(stream="stderr") == [("line", '{"type": "turn.started"}')]
        assert world.queue.transcript("a")["attempt"] == 1


def test_what_is_not_there_is_named(world):
    world.queue.add("Wait", id="b", needs=["a"])
    for asked, code in (({"task": "b"}, "no_attempt"), ({"task": "x"}, "unknown_task"),
                        ({"task": "a", "attempt": 7}, "no_attempt")):  # fmt: skip
        with pytest.raises(NotFound) as told:
            world.queue.ask("transcript", **asked)
        assert told.value.error_code == code
    with pytest.raises(Invalid, match="not a cursor"):
        world.queue.transcript("a", cursor="later")
    far = world.queue.transcript("a", cursor=f"{10**15}.0.1")
    assert far["entries"] == []
    (world.run / "stdout.log").symlink_to("/etc/passwd")
    with pytest.raises(Refused, match="symbolic link"):
        world.queue.transcript("a")


@SHARED
@given(st.binary(max_size=400), st.integers(1, 5))
def test_random_bytes_never_raise_and_pages_are_the_whole(tmp_path, data, limit):
    world = World(tmp_path / str(len(list(tmp_path.iterdir()))))
    with world.queue:
        (world.run / "stdout.log").write_bytes(data)
        (world.run / "stdout.times").write_bytes(data)
        assert world.pages(limit=limit) == world.pages()
        world.queue.complete(world.lease, result={"answer": "x"})
        assert world.pages(limit=limit) == world.pages()
        assert world.pages()[-1]["kind"] == "answer"


@pytest.mark.slow
def test_100_mb_of_anything_come_in_bounded_pages(world):
    with (world.run / "stdout.log").open("wb") as log:
        log.write(b'{"type":"assistant","message":{"content":"' + b"x" * (60 << 20) + b'"}}\n')
        line = json.dumps(answer("y" * 10_000)).encode() + b"\n"
        for _ in range((40 << 20) // len(line)):
            log.write(line)
    cursor, seen, number = None, 0, 0
    while True:
        page = world.queue.transcript("a", cursor=cursor, limit=1000)
        assert sum(len(entry["text"]) for entry in page["entries"]) <= (256 + 64) * 1024
        for entry in page["entries"]:
            number += 1
            assert entry["n"] == number
            seen += entry["kind"] == "said"
        if page["cursor"] == cursor:
            break
        cursor = page["cursor"]
    assert seen == (40 << 20) // len(line)
