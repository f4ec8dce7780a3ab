"""What may be read and written in a run folder, and how its logs are read as they grow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.executors.base import Gone, Handle, Orders
from fairlane.executors.process import ProcessExecutor, orders_text
from fairlane.executors.runfiles import Damaged, Lines, append, opened, put, read_record, size
from fairlane.executors.runner import marked, process_started
from fairlane.executors.starting import RUN

pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "t1" / "1"
    folder.mkdir(parents=True)
    return folder


def test_only_regular_files_are_opened(run: Path, tmp_path: Path) -> None:
    os.mkfifo(run / "fifo")
    (run / "folder").mkdir()
    (run / "file").write_text("{}")
    (run / "link").symlink_to(run / "file")
    for name, said in (("fifo", "regular"), ("folder", "regular"), ("link", "symbolic link")):
        for use in (opened, read_record, lambda path: append(path, "x")):
            with pytest.raises(Damaged, match=f"{name} is .*{said}"):
                use(run / name)
    assert read_record(run / "file") == {}
    assert read_record(run / "nothing") is None
    assert [size(run / name) for name in ("file", "fifo", "link", "nothing")] == [2, 0, 0, 0]


@pytest.mark.parametrize("linked", ["t1", "t1/1"])
def test_a_run_folder_that_is_a_link_is_not_entered(run: Path, tmp_path: Path, linked: str) -> None:
    (run / "file").write_text("{}")
    folder = tmp_path / "runs" / linked
    folder.rename(tmp_path / "away")
    folder.symlink_to(tmp_path / "away")
    with pytest.raises(Damaged, match="symbolic link"):
        read_record(run / "file")
    with pytest.raises(Damaged, match="symbolic link"):
        put(run / "new", "x")
    assert list((tmp_path / "away").rglob("new")) == []


def test_a_link_in_the_place_of_what_is_written_is_replaced(run: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in ("result.json", "result.json.new"):
        (run / name).symlink_to(victim)
    put(run / "result.json", "ours")
    assert (victim.read_text(), (run / "result.json").read_text()) == ("mine", "ours")
    assert not (run / "result.json").is_symlink()
    assert [each.name for each in run.iterdir()] == ["result.json"]


def test_a_log_is_read_as_it_grows_and_long_lines_are_skipped_whole(run: Path) -> None:
    log = run / "stdout.log"
    lines = Lines(ProcessExecutor(), run, most=10)
    assert lines.more(100) == []
    log.write_bytes(b"one\ntw")
    assert lines.more(100) == ["one"]
    with log.open("ab") as more:
        more.write("o\nthrée\n".encode() + b"x" * 25 + b"\n" + b"y" * 10 + b"\nlast")
    assert lines.unread() == log.stat().st_size - 6
    found = []
    while lines.unread():
        found += lines.more(7)
    assert found == ["two", "thrée", "yyyyyyyyyy"]
    assert [each for part in lines.rest() for each in part] == ["last"]


def test_the_rest_of_a_log_is_read_to_its_end_in_parts(run: Path) -> None:
    log = run / "stdout.log"
    log.write_bytes(b"".join(b"%d\n" % number for number in range(300_000)))
    parts = list(Lines(ProcessExecutor(), run).rest())
    assert len(parts) > 1
    assert [int(each) for part in parts for each in part] == list(range(300_000))


def test_records_that_the_end_of_the_machine_left_empty_are_no_damage(run: Path) -> None:
    for name in ("runner.json", "ended.json"):
        (run / name).touch()
    assert ProcessExecutor().poll(Handle(run)) == Gone()
    assert ProcessExecutor().adopt(run) is None


def test_a_run_folder_that_names_a_stranger_harms_nobody(run: Path) -> None:
    """What a run folder says of processes is believed only of runners, and of what they started."""
    stranger = subprocess.Popen(
        [sys.executable, "-c", "input(print('up', flush=True))"], start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert stranger.stdout is not None
    assert stranger.stdout.readline() == b"up\n"  # while it starts it has no environment
    pid, started = stranger.pid, process_started(stranger.pid)
    told = {"pid": pid, "pid_started": started, "agent_pid": pid, "agent_started": started}
    (run / "runner.json").write_text(json.dumps(told))
    executor = ProcessExecutor()
    assert executor.adopt(run) is None
    executor.clean_up(run)
    stranger.communicate(b"\n")
    assert stranger.returncode == 0


def test_masks_that_cannot_be_joined_end_the_agent_and_say_so(run: Path) -> None:
    masks = ("one", "(?i)two")  # each is good, but flags stand at the beginning alone
    orders = Orders(run, ("sleep", "60"), Path("/"), dict(os.environ), mask=masks)
    subprocess.run(RUN, input=orders_text(orders), check=True)
    told = read_record(run / "exit.json") or {}
    assert str(told["launch_error"]).startswith("log.mask: not a regular expression: global flags")
    assert told["environment"] is True
    assert marked(str(run)) == []
