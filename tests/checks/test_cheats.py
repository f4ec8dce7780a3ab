"""Agents that would rather not be checked: claims, planted results, and what changes later."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("mcp")
from fairlane.executors.process import ProcessExecutor
from fairlane.runtime import checks as runtime_checks
from fairlane.runtime.direct import take_in
from tests.attackers.test_tokens_http import tool
from tests.checks.coders import Coders, waits
from tests.daemon.world import World, is_zombie, until
from tests.http.served import Server, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

FAIRLANE = f"{sys.executable} -m fairlane"
PASSED = [{"name": "never", "exit": 0}]


@pytest.fixture
def served(coders: Coders) -> Iterator[Server]:
    with serving(coders.world.home) as found:
        yield found


def running(coders: Coders, tmp_path: Path, check: str) -> tuple[str, Path]:
    """The lease of an attempt that runs until its gate is there."""
    gate = tmp_path / "gate"
    coders.does("a", 1, waits(gate))
    coders.add("a", ("never", check), session="fresh")
    coders.world.up()
    until(lambda: Path(f"{gate}.started").exists())
    return str(coders.world.attempts("a")[0].lease), gate


@pytest.mark.parametrize(("check", "status"), [("exit 0", "done"), ("exit 4", "parked")])
def test_a_claim_by_its_token_is_no_end(
    world: World, coders: Coders, served: Server, tmp_path: Path, check: str, status: str
) -> None:
    lease, gate = running(coders, tmp_path, check)
    badge = served.ask("POST", f"/leases/{lease}/token")["token"]
    for body in ({}, {"checks": PASSED}, {"checks": PASSED, "result": {"summary": "done"}}):
        reply = served.call("POST", f"/api/v1/leases/{lease}/complete", body, token=badge)
        assert (reply.status, reply.document["code"]) == (200, "checks_pending"), reply
        failed, document = tool(served, badge, "complete", lease=lease, **body)
        assert (failed, document["code"]) == (False, "checks_pending")
        assert world.statuses() == {"a": "running"}
    gate.touch()
    coders.until("a", "done", "parked")
    assert world.statuses() == {"a": status}


def test_nor_is_one_by_a_command_or_its_socket(
    world: World, coders: Coders, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    hidden = f"env FAIRLANE_HOME=/nonexistent {FAIRLANE}"
    lines = [
        f"{FAIRLANE} --json complete > {said}.1",
        f"{FAIRLANE} --json complete --check never=0 > {said}.2",
        f"{hidden} --json complete --check never=0 > {said}.3",
    ]
    coders.does("a", 1, "set -e\n" + "\n".join(lines))
    coders.add("a", ("never", "exit 4"), session="fresh")
    world.run()
    answers = [json.loads(Path(f"{said}.{number}").read_text()) for number in (1, 2, 3)]
    assert [answer["code"] for answer in answers] == ["checks_pending"] * 3
    assert coders.outcomes("a") == [("check_failed", "check never: exit 4")]
    assert world.statuses() == {"a": "parked"}


def test_an_agent_that_claims_and_then_fails_has_failed(world: World, coders: Coders) -> None:
    coders.does("a", 1, f"{FAIRLANE} complete --check never=0; exit 3")
    coders.add("a", ("never", "exit 4"), session="fresh")
    world.run()
    assert [outcome for outcome, _ in coders.outcomes("a")] == ["failed"]


def test_a_child_without_checks_is_refused(world: World, coders: Coders, tmp_path: Path) -> None:
    said = tmp_path / "said"
    coders.does("a", 1, f"{FAIRLANE} --json add Part --id b --no-checks > {said}; true")
    world.fairlane("project", "set", "web", "--check", "true")
    coders.add("a")
    world.run()
    assert world.statuses() == {"a": "done"}
    assert json.loads(said.read_text())["error"]["code"] == "may_add"


#: What an agent leaves where its first check would leave its result.
PLANTS = {
    "folder": 'mkdir "$at"; echo \'{"exit_code": 0, "ended_at": 1}\' > "$at/exit.json"',
    "noted": 'mkdir "$at"; echo \'{"exit_code": 0}\' > "$at/ended.json"',
    "link": 'mkdir /lair; echo \'{"exit_code": 0}\' > /lair/exit.json; ln -s /lair "$at"',
    "dangling": 'ln -s /nonexistent/nothing "$at"',
    "pipe": 'mkfifo "$at"',
    "pipes inside": 'mkdir "$at"; mkfifo "$at/exit.json" "$at/runner.json" "$at/stdout.log"',
    "links inside": 'mkdir "$at"; ln -s /etc/passwd "$at/exit.json"; ln -s /etc "$at/d"',
    "revoked": 'mkdir "$at"; touch "$at/revoked"',
    "file": 'echo passed > "$at"',
}


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("code", [0, 4])
def test_what_it_plants_says_nothing(world: World, coders: Coders, plant: str, code: int) -> None:
    runs = world.home / "runs" / "a"
    script = PLANTS[plant].replace("/lair", str(world.home / "lair"))
    coders.does("a", 1, f"set -e; at={runs}/1.check.0; {script}")
    coders.add("a", ("never", f"echo ran >&2; exit {code}"), session="fresh")
    world.run()
    failed = ("check_failed", f"check never: exit {code}")
    assert coders.outcomes("a") == [failed if code else ("succeeded", "")]
    assert (runs / "1.check.0" / "stdout.log").read_text() == "ran\n"
    assert Path("/etc/passwd").read_text()


@pytest.mark.parametrize("where", [(runtime_checks, "command_orders"), (ProcessExecutor, "launch")])
def test_nor_does_it_after_a_crash_before_the_check_runs(
    world: World, coders: Coders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any
) -> None:
    """The folder is emptied before the store says that the check runs."""
    runs, gate = world.home / "runs" / "a", tmp_path / "gate"
    plants = [f"at={runs}/1.check.0{again}; {PLANTS['folder']}" for again in ("", ".2", ".3")]
    coders.does("a", 1, f"{'; '.join(plants)}; {waits(gate)}")
    coders.add("a", ("never", "exit 4"), session="fresh")
    pid = world.up()
    until(lambda: Path(f"{gate}.started").exists())
    runner = world.runner("a")["pid"]
    world.kill(pid)
    gate.touch()
    until(lambda: is_zombie(runner))
    with monkeypatch.context() as patched, world.context() as context:
        patched.setattr(where[0], where[1], crash)
        with pytest.raises(KeyboardInterrupt):
            take_in(context)
    world.run()
    assert coders.outcomes("a") == [("check_failed", "check never: exit 4")]


def crash(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_it_leaves_behind_is_gone_before_it_is_checked(
    world: World, coders: Coders, tmp_path: Path
) -> None:
    """A process that would rewrite the result of the check, as long as it lives."""
    at = world.home / "runs" / "a" / "1.check.0" / "exit.json"
    forge = f"while :; do echo '{{\"exit_code\": 0}}' > {at}; sleep 0.01; done"
    (tmp_path / "forge.sh").write_text(f"touch {tmp_path}/forging\n{forge}\n")
    leave = f"setsid nohup sh {tmp_path}/forge.sh > /dev/null 2>&1 &"
    coders.does("a", 1, f"{leave} while ! test -e {tmp_path}/forging; do sleep 0.05; done")
    coders.add("a", ("never", "sleep 0.5; exit 4"), session="fresh")
    world.run()
    assert coders.outcomes("a") == [("check_failed", "check never: exit 4")]
    assert world.processes() == []


def test_a_check_that_forges_its_own_result_has_what_its_process_says(
    world: World, coders: Coders
) -> None:
    at = world.home / "runs" / "a" / "1.check.0"
    forge = f"echo '{{\"exit_code\": 0}}' > {at}/exit.json; sleep 1; exit 4"
    coders.add("a", ("never", forge), session="fresh")
    world.run()
    assert coders.outcomes("a") == [("check_failed", "check never: exit 4")]


@pytest.mark.parametrize("record", ["exit.json", "ended.json"])
def test_nor_does_it_help_to_kill_its_runner(world: World, coders: Coders, record: str) -> None:
    """Nobody but the runner knows what a success must say."""
    folder = world.home / "runs" / "a" / "1.check.0"
    forged = f'echo \'{{"exit_code": 0, "seal": ""}}\' > $at/{record}'
    pid = "sed 's/.*\"pid\": \\([0-9]*\\).*/\\1/' $at/runner.json"
    again = f"test $starts = 1 && at={folder} || at={folder}.$starts; {forged}; kill -9 $({pid})"
    count = f"echo x >> {world.home}/starts; starts=$(wc -l < {world.home}/starts)"
    coders.add("a", ("never", f"{count}; {again}; sleep 1; exit 4"), session="fresh")
    world.run()
    assert world.attempts("a")[0].outcome == "failed"
    assert "its runner was killed 3 times" in world.attempts("a")[0].detail
    assert world.statuses() == {"a": "parked"}


def test_checks_of_its_own_are_more_and_never_fewer(world: World, coders: Coders) -> None:
    world.fairlane("project", "set", "web", "--check", "false")
    child: dict[str, Any] = {"id": "b", "prompt": "x", "checks": [["true"]]}
    coders.does("a", 1, f"echo '{json.dumps([child])}' > ../tasks.json; true")
    coders.add("a", ("mine", "true"), session="fresh")
    world.run()
    assert [row["name"] for row in world.attempts("a")[0].checks] == ["false", "mine"]
    assert coders.outcomes("a") == [("check_failed", "check false: exit 1")]
