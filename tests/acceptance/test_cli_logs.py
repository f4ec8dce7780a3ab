"""`fairlane logs` as people read it, and as programs do."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from fairlane.app import Fairlane
from fairlane.model.instant import SECOND, parse_instant
from tests.acceptance.commands import fairlane
from tests.acceptance.queue_home import START, Home
from tests.afar.served import ENV
from tests.unit.agents.test_transcript import gave, uses
from tests.unit.agents.transcripts import answer, init, result
from tests.waiting import LIMIT_SECONDS

LONG = "The form sends the password twice, once in the address. " * 3
PATH = "src/a/rather/long/path/to/a/file/that/does/not/fit/into/one"
TEXT = """\
12:00:01  ── started (claude-x)
12:00:01  The form sends the password twice, once in the address. The form sends
          the password twice, once in the address. The form sends the password
          twice, once in the address.
12:00:01  Bash  make test
          │ 3 passed  … 2 lines more
12:00:01  Read  src/a/rather/long/path/to/a/file/that/does/not/fit/into/one/lin…
          │ (nothing)
12:00:05  Half way.
12:00:05  error: five_hour limit reached
12:00:05  ── ended: 1,200 in, 50 out, 300 cached

── answer ──────────────────────────────────────────────────────────────────────
Done.

- \\u202ethe form
"""


def complete(home: Home, last: str) -> None:
    """The attempt ends with this answer."""
    file = home.folder / "result.json"
    file.write_text(json.dumps({"answer": last}))
    home.ask("complete", "L1", "--result", file)


def words(home: Home, *more: str) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-u", "-m", "fairlane", "--home", str(home.folder), "logs", *more]


@pytest.fixture
def told(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A task whose attempt has ended, with a log and its times."""
    monkeypatch.setenv("COLUMNS", "80")
    home.ask("add", "Fix the form", "--id", "form")
    home.ask("lease", "--limit", "1")
    last = "Done.\n\n- \u202ethe form"
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}}
    limit["rate_limit_info"]["rateLimitType"] = "five_hour"  # type: ignore[index]
    first = [
        init(), answer(LONG), uses("Bash", command="make test"), gave("3 passed\n\nin 0.2s\n"),
        uses("Read", file_path=f"{PATH}/line/of/it"),
        gave(""),
    ]  # fmt: skip
    rest = [answer("Half way."), limit, answer(last), result(last)]
    texts = ["".join(json.dumps(each) + "\n" for each in part) for part in (first, rest)]
    run = home.folder / "runs" / "form" / "1"
    run.mkdir(parents=True)
    (run / "stdout.log").write_text("".join(texts))
    at = parse_instant(START)
    times = f"0 {at + SECOND}\n{len(texts[0])} {at + 5 * SECOND}\n"
    (run / "stdout.times").write_text(times)
    home.later(8)
    complete(home, last)
    return home


def test_a_transcript_at_80_columns(told: Home) -> None:
    said = told.run("logs", "form")
    assert (said.code, said.err) == (0, "")
    assert said.out == TEXT
    assert max(map(len, said.out.splitlines())) <= 80


def test_whole_results_and_what_came_late(told: Home) -> None:
    opened = told.run("logs", "form", "--full").out
    assert "          │ 3 passed\n          │\n          │ in 0.2s\n" in opened.replace(
        "│ \n", "│\n"
    )
    assert opened.count("          │ (nothing)\n") == 1
    late = told.run("logs", "form", "--since", "4s").out.splitlines()
    assert late[0] == "12:00:05  Half way."


def on_a_terminal(command: list[str]) -> str:
    """What a command writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = ENV | {"TERM": "xterm"}
    with subprocess.Popen(command, env=env, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # the other side is closed
            while data := os.read(ours, 4096):
                seen += data
        assert process.wait(LIMIT_SECONDS) == 0
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_a_terminal_has_colours_and_obeys_no_agent(told: Home) -> None:
    log = told.folder / "runs" / "form" / "1" / "stdout.log"
    log.write_text(json.dumps(uses("Bash", command="make \x1b]0;x\x07")) + "\n\x1b[2Jplain\n")
    shown = on_a_terminal(words(told, "form"))
    assert "\x1b[1;36mBash\x1b[0m  make \\x1b]0;x\\x07\n" in shown
    assert "\n\\x1b[2Jplain\n" in shown
    raw = on_a_terminal(words(told, "form", "--raw"))
    assert raw.endswith("\n\\x1b[2Jplain\n")


def test_as_json(told: Home) -> None:
    document = told.ask("logs", "form")
    assert document["schema"] == "fairlane/1"
    assert (document["task"], document["attempt"], document["ended"]) == ("form", 1, True)
    kinds = [entry["kind"] for entry in document["transcript"]]
    assert kinds == [
        "turn", "said", "tool", "result", "tool", "result", "said", "error", "said", "turn",
        "answer",
    ]  # fmt: skip
    tool = document["transcript"][2]
    assert tool == {
        "n": 3, "at": "2026-01-30T12:00:01Z", "kind": "tool", "text": "", "tool": "Bash",
        "argument": "make test", "truncated": False, "tokens": None,
    }  # fmt: skip
    lines = told.run("--json", "logs", "form", "-f").out.splitlines()
    assert [json.loads(line) for line in lines] == document["transcript"]


def test_the_answer_is_in_show_and_summary(told: Home) -> None:
    assert told.ask("show", "form")["answer"] == "Done.\n\n- \u202ethe form"
    assert "Answer:\n    Done.\n\n    - \\u202ethe form\n" in told.run("show", "form").out
    assert "Fix the form: Done." in told.run("summary").out


@pytest.mark.slow
def test_raw_is_the_file(told: Home) -> None:
    log = told.folder / "runs" / "form" / "1" / "stdout.log"
    data = b"\x1b[1m\xff\x00 \xe2\x80\xae\n{no end"
    log.write_bytes(data)
    for more in ((), ("-f",)):
        command = words(told, "form", "--raw", *more)
        said = subprocess.run(command, env=ENV, stdout=subprocess.PIPE, check=True)
        assert said.stdout == data
    command = words(told, "form")
    shown = subprocess.run(command, env=ENV, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert shown.startswith("\\x1b[1m\ufffd\\x00 \\u202e\n{no end\n")


def test_what_there_is_not(home: Home) -> None:
    home.ask("add", "Fix", "--id", "a")
    found = home.error("logs", "a")
    assert (found["code"], found["message"]) == ("no_attempt", "a has not been started")
    assert home.error("logs", "a", "--raw")["code"] == "no_attempt"
    assert home.error("logs", "b")["code"] == "unknown_task"
    home.ask("lease", "--limit", "1")
    assert home.error("logs", "a", "--attempt", "2")["code"] == "no_attempt"
    assert home.error("logs", "a", "--raw", "--since", "1h", code=2)["code"] == "usage"
    document = home.ask("logs", "a")
    assert (document["transcript"], document["ended"]) == ([], False)


def test_progress_of_an_attempt_that_has_ended_is_not_shown(home: Home) -> None:
    home.ask("add", "Fix", "--id", "a")
    home.ask("lease", "--limit", "1")
    home.ask("report", "L1", "--note", "nearly there")
    assert "nearly there" in home.run("show", "a").out
    home.ask("complete", "L1")
    assert "nearly there" not in home.run("show", "a").out.split("Last events:")[0]


@pytest.mark.slow
def test_it_is_followed_until_the_attempt_ends(home: Home) -> None:
    home.ask("add", "Fix", "--id", "a")
    home.ask("lease", "--limit", "1")
    log = home.folder / "runs" / "a" / "1" / "stdout.log"
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps(answer("First")) + "\n" + json.dumps(answer("Second")) + "\n")
    command = words(home, "a", "-f")
    with subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, text=True) as seen:
        assert seen.stdout is not None
        assert seen.stdout.readline().strip() == "First"
        assert seen.stdout.readline().strip() == "Second", "though it could be the answer"
        with log.open("a") as held:
            held.write(json.dumps(answer("Third")) + "\n" + json.dumps(result("Third")) + "\n")
        complete(home, "Third")
        rest, _ = seen.communicate(timeout=LIMIT_SECONDS)
        assert seen.returncode == 0
    assert rest.count("── answer ") == 1
    assert rest.endswith("Third\n")


@pytest.mark.slow
def test_what_a_check_printed(home: Home) -> None:
    home.ask("add", "--id", "a", "--check", "echo first line", "--", "echo", "done")
    fairlane("--home", home.folder, "run")
    assert home.run("logs", "a").out == "done\n"
    assert home.run("logs", "a", "--check", "echo first").out == "first line\n"
    assert home.run("logs", "a", "--check", "echo first", "--raw", "-f").out == "first line\n"
    (entry,) = home.ask("logs", "a", "--check", "echo first")["transcript"]
    assert (entry["kind"], entry["text"]) == ("line", "first line")
    assert entry["at"] is not None
    assert home.error("logs", "a", "--check", "ecko")["code"] == "unknown_check"
    with Fairlane(home.folder) as queue:
        page = queue.check_log("a", "echo first")
    assert (page["text"], page["ended"]) == ("first line\n", True)
