"""`--url`: what a verb prints is the same, whether it asks a home folder or a server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fairlane.app import Fairlane
from fairlane.cli.main import run
from fairlane.clock import SystemClock
from fairlane.model.instant import parse_instant
from tests.acceptance.commands import Said, fairlane
from tests.acceptance.queue_home import START, Home
from tests.afar.served import ENV, serving
from tests.waiting import LIMIT_SECONDS

pytest.importorskip("uvicorn")
pytestmark = pytest.mark.slow

#: A life of a queue as people type it; the exit code must be the same too.
LINES = """
status
list
project add web --weight 3 --max-in-flight 2
project set web --budget tokens=5000,window=24h
project show web
group add release --priority 7
add Fix --id a --project web
add Review --id b --need a --kind review
add Later --id c --not-before 2h
add Known --id a
add Dry --dry-run
add --file tasks.jsonl --group release --chain
add --file wrong.jsonl
add --project nowhere x
status
plan
list
list --status queued,done --held-by needs
list --held-by nothing
list --limit 2
show b
show nobody
why a
why b
why nobody
edit c --not-before none --priority 3
edit c --priority many
pause kind:review --reason away
pause kind:review
lease --limit 2 --worker box --label gpu
lease --limit 0
heartbeat L1
report L1 --tokens 12 --cost 0.25 --progress 1/2 --note half
logs a
logs a --raw
logs a --stderr
logs a --full --since 1h
logs b
logs a --attempt 7
logs a --raw --since 1h
complete L1 --tokens input=9,output=20
complete L1
complete L9
release L2 --outcome throttled --retry-after 90 --resets-at 2026-01-30T13:00:00Z
lease --worker box --wait 0s
release L3 --failed --reason boo
resume
resume kind:review
policy set caps.all=3 order=priority,age
policy set caps.all=many
policy show
replay --list
replay 1
replay 1 --show
replay 99
events --after 2
events --task a --limit 3
events --kind added --limit 2
summary
summary --since yesterday
stats --since 2h
group list
group show release
group set release --priority none
pool list
pool show anthropic
worker list
worker show box
reclaim
cancel b c --reason no
retry b
clear project:web --dry-run
clear project:web
clear --yes
project remove web
project list
"""


@pytest.fixture
def served(tmp_path, home, capsys, monkeypatch):
    """Two home folders at one instant: one is asked here, the other through a server."""
    monkeypatch.setattr(SystemClock, "now", lambda self: parse_instant(START))
    there = tmp_path / "there"
    with serving(there, "--now", START) as url:
        monkeypatch.setenv("FAIRLANE_TOKEN", (there / "token").read_text().strip())
        yield url, there


def said_over(url: str, capsys: pytest.CaptureFixture[str], *words: str) -> Said:
    capsys.readouterr()
    code = run(["--url", url, *words])
    told = capsys.readouterr()
    return Said(code, told.out, told.err)


def test_every_verb_says_the_same_here_and_there(served, home, capsys, tmp_path):
    url, there = served
    (tmp_path / "tasks.jsonl").write_text('{"id": "e"}\n\n{"id": "f", "prompt": "x"}\n')
    (tmp_path / "wrong.jsonl").write_text('{"id": "g"}\n\n{"id": "h", "promt": "x"}\n')
    home.run("status")
    (home.folder / "daemon.json").touch()  # else it is said that none runs here
    for line in LINES.strip().splitlines():
        words = [str(tmp_path / word) if word.endswith(".jsonl") else word for word in line.split()]
        for more in ((), ("--json",)):
            here = home.run(*words, *more)
            away = said_over(url, capsys, *words, *more)
            out, err = (text.replace(str(there), str(home.folder)) for text in away[1:])
            assert (away.code, out, err) == here, line
    assert home.facts() == Home(there, capsys).facts()


@pytest.mark.parametrize(
    "line",
    [
        "init", "doctor", "migrate", "backup b.db", "run --once", "up", "down", "drain", "demo",
        "workspaces", "policy use balanced", "policy check policy.toml", "policy presets",
        "policy diff balanced depth-first", "policy try balanced", "policy show balanced",
        "plan --scenario examples/balanced.toml", "why a --scenario examples/balanced.toml",
        "replay", "serve",
    ],
)  # fmt: skip
def test_what_needs_files_of_this_machine_is_not_over_a_url(line, capsys, monkeypatch):
    said = said_over("http://127.0.0.1:9", capsys, *line.split())
    assert (said.code, said.out) == (2, "")
    assert ": not over a URL\nhint: " in said.err


def test_one_place_at_a_time(tmp_path, capsys, monkeypatch, home):
    both = said_over("http://127.0.0.1:9", capsys, "status", "--home", str(tmp_path))
    assert both.code == 2
    assert "error: --url is a server, --home and --db are folders here" in both.err
    assert said_over("http://127.0.0.1:9", capsys, "status", "--db", "sqlite:x").code == 2
    late = said_over("http://127.0.0.1:9", capsys, "status", "--now", START)
    assert (late.code, "--now: not over a URL" in late.err) == (2, True)
    monkeypatch.setenv("FAIRLANE_URL", "http://127.0.0.1:9")
    assert home.run("status").code == 0  # a folder that was named goes before the environment
    monkeypatch.setenv("FAIRLANE_HOME", str(tmp_path))
    assert run(["status"]) == 75
    assert "http://127.0.0.1:9 cannot be reached" in capsys.readouterr().err


def test_where_the_url_may_stand_and_what_a_bad_token_says(served, capsys, monkeypatch):
    url, _ = served
    assert run(["add", "x", "--url", url]) == 0
    monkeypatch.setenv("FAIRLANE_URL", url)
    assert run(["show", "t1"]) == 0
    assert "t1" in capsys.readouterr().out
    monkeypatch.setenv("FAIRLANE_TOKEN", "not-the-token")
    said = said_over(url, capsys, "status")
    assert said.code == 1
    assert "FAIRLANE_TOKEN" in said.err


@contextmanager
def following(*words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on; it does not outlive the block."""
    command = [sys.executable, "-u", "-m", "fairlane", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=ENV | environment, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_events_and_logs_are_followed_there_too(tmp_path):
    home = tmp_path / "home"
    with serving(home) as url, Fairlane(home) as queue:
        queue.add("x", id="a")
        token = (home / "token").read_text().strip()
        with following("events", "-f", "--after", "0", "--url", url, FAIRLANE_TOKEN=token) as seen:
            assert seen.stdout is not None
            assert "added" in seen.stdout.readline()
            lease = queue.lease(worker="box")["leases"][0]["lease"]
            assert "leased" in seen.stdout.readline()
            os.kill(seen.pid, signal.SIGINT)
            assert seen.wait(LIMIT_SECONDS) == 130
        log = home / "runs" / "a" / "1" / "stdout.log"
        log.parent.mkdir(parents=True)
        log.write_text("first\n")
        with following("logs", "a", "-f", "--url", url, FAIRLANE_TOKEN=token) as seen:
            assert seen.stdout is not None
            assert seen.stdout.readline() == "first\n"
            with log.open("ab") as held:
                held.write("zweite \x1bü\n".encode())
            assert seen.stdout.readline() == "zweite \\x1bü\n"
            queue.complete(lease)
            assert seen.wait(LIMIT_SECONDS) == 0


def test_a_page_of_a_log_ends_with_a_whole_letter(tmp_path):
    with Fairlane(tmp_path) as queue:
        queue.add("x", id="a")
        queue.lease(worker="box")
        log = tmp_path / "runs" / "a" / "1" / "stdout.log"
        log.parent.mkdir(parents=True)
        text = "aü€😀" * 20
        log.write_bytes(text.encode())
        for limit in (4, 5, 6, 7, 9):
            place, parts = 0, []
            while place < len(text.encode()):
                page = queue.logs("a", offset=place, limit=limit)
                assert page["next"] > place
                parts.append(page["text"])
                place = page["next"]
            assert "".join(parts) == text


def test_another_program_uses_the_library_over_a_url(tmp_path):
    home = tmp_path / "home"
    with serving(home) as url:
        token = (home / "token").read_text().strip()
        with Fairlane(url, token=token) as queue:
            queue.add_project("web", weight=2)
            queue.add([{"id": "a"}, {"id": "b"}], chain=True, project="web")
            lease = queue.lease(1, worker="box", wait="1s")["leases"][0]["lease"]
            assert queue.heartbeat(lease)["status"] == "running"
            assert queue.complete(lease, tokens=5, result={"ok": True})["status"] == "done"
            assert [row["status"] for row in queue.list()["tasks"]] == ["done", "queued"]
            assert queue.set_policy({"caps.all": 2})["differences"][0]["b"] == 2
            assert {row["key"]: row["value"] for row in queue.policy()["keys"]}["caps.all"] == 2
            events = queue.follow(0)
            assert next(events)["kind"] == "project_added"
            events.close()  # type: ignore[attr-defined]
        said = fairlane("--url", url, "--json", "show", "a", FAIRLANE_TOKEN=token)
    assert said.document["task"]["status"] == "done"
