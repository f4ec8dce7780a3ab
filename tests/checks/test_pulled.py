"""Holders outside run the checks themselves: without their results nothing is done."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
from tests import warm
from tests.http.served import Server, serving
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.slow

CHECKS = [{"name": "make test", "argv": ["make", "test"], "timeout": "2m"}, ["ruff", "check"]]
PASSED = [{"name": "make test", "exit": 0, "seconds": 1.5}, {"name": "ruff check", "exit": 0}]
FAILED = [{"name": "make test", "exit": 2, "output": "one \x1b[2J failed\n"}, PASSED[1]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "policy.toml").write_text('retry.base = "1h"\nlease.ttl = "1m"\n')
    with serving(tmp_path) as found:
        yield found


def leased(server: Server, task: str = "a") -> dict[str, Any]:
    """The lease document of a task with checks."""
    fields = {"id": task, "prompt": "x", "agent": "claude", "checks": CHECKS}
    server.ask("POST", "/tasks", {"tasks": [fields]})
    (lease,) = server.ask("POST", "/leases", {"limit": 1, "worker": "box1"})["leases"]
    return dict(lease)


def complete(server: Server, lease: str, **more: Any) -> tuple[int, str, dict[str, Any]]:
    """Status, code and document of an answer."""
    reply = server.call("POST", f"/api/v1/leases/{lease}/complete", dict(more))
    code = reply.code if reply.status != 200 else str(reply.document.get("code"))
    return reply.status, code, reply.document


def command(server: Server, *words: str) -> tuple[int, dict[str, Any]]:
    """The same by the command line."""
    line = ["--home", str(server.home), "--json", *words]
    done = warm.run(line, os.environ, Path.cwd(), seconds=LIMIT_SECONDS)
    return done.returncode, json.loads(done.stdout)


def task_of(server: Server, task: str = "a") -> dict[str, Any]:
    return dict(server.ask("GET", f"/tasks/{task}"))


def expire(server: Server, task: str = "a") -> None:
    """Its lease runs out: a command acts at a later time."""
    code, answer = command(server, "--now", "2100-01-01T00:00:00Z", "reclaim")
    assert (code, answer["reclaimed"]) == (0, [task])


def test_the_lease_names_them(server: Server) -> None:
    assert leased(server)["checks"] == [
        {"name": "make test", "argv": ["make", "test"], "timeout": "2m"},
        {"name": "ruff check", "argv": ["ruff", "check"], "timeout": None},
    ]


@pytest.mark.parametrize("given", [[], PASSED[:1], [{"name": "other", "exit": 0}]])
def test_without_all_results_nothing_changes(server: Server, given: list[Any]) -> None:
    lease = leased(server)["lease"]
    server.ask("POST", f"/leases/{lease}/heartbeat")
    before = task_of(server)
    assert complete(server, lease, checks=given)[:2] == (409, "checks_missing")
    words = [f"--check={row['name']}={row['exit']}" for row in given]
    code, answer = command(server, "complete", lease, *words)
    assert (code, answer["error"]["code"]) == (1, "checks_missing")
    assert "ruff check" in answer["error"]["message"]
    after = task_of(server)
    assert after["task"]["status"] == "running"
    assert after["attempts"] == before["attempts"]
    assert complete(server, lease, checks=PASSED)[0] == 200


def test_with_passing_results_it_is_done(server: Server) -> None:
    status, _, document = complete(server, leased(server)["lease"], checks=PASSED)
    assert (status, document["status"]) == (200, "done")
    passed = server.ask("GET", "/events?kind=check_passed")["events"]
    assert [(row["task"], row["data"]["check"]) for row in passed] == [
        ("a", "make test"), ("a", "ruff check"),
    ]  # fmt: skip
    lease = leased(server, "b")["lease"]
    code, answer = command(server, "complete", lease, "--check=make test=0", "--check=ruff check=0")
    assert (code, answer["status"]) == (0, "done")
    assert complete(server, lease)[:2] == (200, "already_done")
    code, answer = command(server, "check", "b")
    assert (code, answer["error"]["code"]) == (1, "elsewhere")


def test_the_token_of_an_attempt_says_nothing_of_its_checks(server: Server) -> None:
    """An agent has it; the holder gave it away."""
    lease = leased(server)["lease"]
    badge = server.ask("POST", f"/leases/{lease}/token")["token"]
    path, body = f"/api/v1/leases/{lease}/complete", {"checks": PASSED}
    reply = server.call("POST", path, body, token=badge)
    assert (reply.status, reply.code) == (409, "checks_missing")
    assert "an attempt's token sends do not count" in reply.document["error"]["hint"]
    assert complete(server, lease, checks=PASSED)[0] == 200


def test_with_a_failing_one_it_is_not(server: Server) -> None:
    lease = leased(server)["lease"]
    server.ask("POST", f"/leases/{lease}/report", {"session": "s1"})
    status, _, document = complete(server, lease, checks=FAILED)
    assert (status, document["status"]) == (200, "queued")
    shown = task_of(server)
    assert (shown["task"]["failures"], shown["attempts"][0]["outcome"]) == (0, "check_failed")
    assert shown["attempts"][0]["detail"] == "check make test: exit 2"
    assert complete(server, lease, checks=PASSED)[:2] == (409, "lease_ended")
    (again,) = server.ask("POST", "/leases", {"limit": 1, "worker": "box1"})["leases"]
    assert again["session"] == "s1"
    assert "The check `make test` failed (exit 2)" in again["prompt"]
    assert "> one \\x1b[2J failed" in again["prompt"]


def test_a_late_success_needs_them_too(server: Server) -> None:
    lease = leased(server)["lease"]
    expire(server)
    assert complete(server, lease)[:2] == (409, "checks_missing")
    assert task_of(server)["task"]["status"] == "queued"
    status, _, document = complete(server, lease, checks=PASSED)
    assert (status, document["status"], document["late"]) == (200, "done", True)


def test_a_late_one_that_failed_is_no_success(server: Server) -> None:
    lease = leased(server)["lease"]
    expire(server)
    status, code, _ = complete(server, lease, checks=FAILED)
    assert (status, code) == (409, "lease_lost")
    assert task_of(server)["task"]["status"] == "queued"
