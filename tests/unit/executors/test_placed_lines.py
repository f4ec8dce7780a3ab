"""Lines of a log with their places, whatever is in it; and when they were written."""

from __future__ import annotations

import os
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.executors import placed_lines, runfiles
from fairlane.executors.base import Orders
from fairlane.executors.placed_lines import PlacedLine, PlacedLines, WriteTimes
from fairlane.executors.process import ProcessExecutor
from fairlane.executors.runner.log import Times
from fairlane.model.amounts import LINE_MAX
from tests.waiting import until

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "t1" / "1"
    folder.mkdir(parents=True)
    return folder


def lines(
    run: Path, start: int = 0, room: int = 1 << 30, ended: bool = True
) -> tuple[list[PlacedLine], bool]:
    reader = PlacedLines(ProcessExecutor(), run, "stdout", start, room, ended)
    return list(reader), reader.at_end


def test_lines_have_their_places(run: Path) -> None:
    assert lines(run) == ([], True)
    (run / "stdout.log").write_bytes("one\n\nz\u00fc\xff".encode("latin-1"))
    found, at_end = lines(run)
    assert [(line.start, line.end, line.text) for line in found] == [
        (0, 4, "one"), (4, 5, ""), (5, 8, "z\ufffd\ufffd"),
    ]  # fmt: skip
    assert at_end
    assert [line.text for line in lines(run, ended=False)[0]] == ["one", ""], "its end may come"
    assert [line.start for line in lines(run, start=4)[0]] == [4, 5]
    assert lines(run, start=10**15) == ([], True)


@SHARED
@given(st.binary(max_size=300), st.integers(1, 40), st.integers(1, 30), st.integers(1, 60))
def test_random_bytes_in_any_parts(
    run: Path, data: bytes, most: int, chunk: int, room: int
) -> None:
    (run / "stdout.log").write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placed_lines, "LINE_MAX", most)
        patch.setattr(placed_lines, "CHUNK", chunk)
        found, at_end = lines(run)
        assert at_end
        paged, start, ended = [], 0, False
        while not ended:
            page, ended = lines(run, start, room)
            paged += page
            start = page[-1].end if page else start
    assert paged == found
    assert all(len(line.data) <= most for line in found)
    ends = [*(line.start for line in found[1:]), len(data)]
    assert [line.end for line in found] == (ends if found else [])
    assert b"".join(data[line.start : line.end] for line in found) == data
    for line in found:
        begins = line.start == 0 or data[line.start - 1 : line.start] == b"\n"
        ends_there = line.end == len(data) or data[line.end - 1 : line.end] == b"\n"
        assert line.whole == (begins and ends_there), "a part says that it is one"


def test_a_page_that_begins_within_a_line_says_so(run: Path) -> None:
    (run / "stdout.log").write_bytes(b"0123456789\nnext\n")
    found, _ = lines(run, start=4)
    assert [(line.text, line.whole) for line in found] == [("456789", False), ("next", True)]


def test_a_line_of_100_mb_is_read_in_parts_and_little_memory(run: Path) -> None:
    with (run / "stdout.log").open("wb") as log:
        log.truncate(100 << 20)  # of zeros, and no end
    tracemalloc.start()
    try:
        reader = PlacedLines(ProcessExecutor(), run, "stdout", 0, 1 << 30, True)
        parts = [(line.end - line.start, line.whole) for line in reader]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [size for size, _ in parts] == [LINE_MAX] * 12 + [100 * (1 << 20) - 12 * LINE_MAX]
    assert not any(whole for _, whole in parts)
    assert peak < 6 * LINE_MAX


def test_times_are_noted_once_a_second(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000 * 10**9
    monkeypatch.setattr("fairlane.executors.runner.log.time.time_ns", lambda: now)
    times = Times(str(run / "stdout.times"))
    for place, passed in ((0, 0.0), (10, 0.5), (20, 0.6), (30, 0.1), (40, 5.0)):
        now += int(passed * 10**9)
        times.note(place)
    times.close()
    noted = WriteTimes(run, "stdout")
    assert [noted.at(place) for place in (0, 19, 20, 39, 40, 10**12)] == [
        1_000_000_000, 1_000_000_000, 1_001_100_000, 1_001_100_000, 1_006_200_000, 1_006_200_000,
    ]  # fmt: skip
    assert WriteTimes(run, "stderr").at(0) is None


def test_times_are_bounded(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10**18
    monkeypatch.setattr("fairlane.executors.runner.log.time.time_ns", lambda: now)
    monkeypatch.setattr("fairlane.executors.runner.log.TIMES_MAX", 200)
    times = Times(str(run / "stdout.times"))
    for place in range(100):
        now += 2 * 10**9
        times.note(place)
    times.close()
    assert (run / "stdout.times").stat().st_size <= 200
    noted = WriteTimes(run, "stdout")
    assert noted.at(0) is not None
    assert noted.at(99) is None, "nobody knows any more"


def test_notes_that_an_agent_changed_tell_nothing(run: Path) -> None:
    file = run / "stdout.times"
    for data in (b"\xff\x00", b"9 x\n-1 5\n", b"1" * 5000, b"\n\n5\n", b"0 " + b"9" * 60):
        file.write_bytes(data)
        assert WriteTimes(run, "stdout").at(10) is None
    file.unlink()
    for make in (
        os.mkfifo,
        lambda path: Path(path).mkdir(),
        lambda path: Path(path).symlink_to("x"),
    ):
        make(file)
        assert WriteTimes(run, "stdout").at(10) is None
        Times(str(file)).note(0)
        file.rmdir() if file.is_dir() else file.unlink()


@pytest.mark.timeout(60)
def test_a_runner_notes_when_its_agent_printed(run: Path, tmp_path: Path) -> None:
    executor = ProcessExecutor()
    argv = (sys.executable, "-c", "print('one'); print('two')")
    executor.launch(Orders(run, argv, tmp_path, dict(os.environ)))
    until(lambda: ended(run))
    noted = WriteTimes(run, "stdout").at(4)
    record = runfiles.read_record(run / "exit.json")
    assert record is not None
    assert noted is not None
    assert int(str(record["started_at"])) <= noted <= int(str(record["ended_at"]))
    assert not (run / "stderr.times").exists(), "nothing was printed there"


def ended(run: Path) -> bool:
    return runfiles.read_record(run / "exit.json") is not None
