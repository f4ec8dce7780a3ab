"""`fairlane check` and the log of a check: what they say here, over a URL, and afterwards."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
from tests import warm
from tests.checks.coders import Coders
from tests.daemon.world import World
from tests.http.served import serving
from tests.waiting import LIMIT_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

LOUD = "echo out; echo err >&2; test -e allowed"


def command(world: World, *words: str, url: str = "") -> tuple[int, dict[str, Any]]:
    """One command that may fail: its exit code and its document."""
    where = ["--url", url] if url else ["--home", str(world.home)]
    line = [*where, "--json", *words]
    done = warm.run(line, os.environ, Path.cwd(), seconds=LIMIT_SECONDS)
    return done.returncode, json.loads(done.stdout)


def test_they_run_again_and_change_no_status(
    world: World, coders: Coders, monkeypatch: pytest.MonkeyPatch
) -> None:
    coders.does("a", 1, "touch allowed")
    coders.add("a", ("loud", LOUD), ("quiet", "true"))
    world.run()
    code, document = command(world, "check", "a")
    assert (code, document["passed"], "error" in document) == (0, True, False)
    (world.home / "worktrees" / "web" / "a" / "allowed").unlink()
    code, document = command(world, "check", "a", "loud")
    assert (code, document["passed"], document["error"]["code"]) == (1, False, "check_failed")
    (row,) = document["checks"]
    assert (row["name"], row["exit"], row["tail"]) == ("loud", 1, "out\nerr")
    assert Path(row["log"]).read_text() == "out\nerr\n"
    assert coders.task("a")["status"] == "done"
    with serving(world.home) as server:
        monkeypatch.setenv("FAIRLANE_TOKEN", server.token)
        afar = command(world, "check", "a", "loud", url=f"http://127.0.0.1:{server.port}")
    afar[1]["checks"][0]["seconds"] = row["seconds"]
    assert afar == (code, document)


def test_its_log_has_output_and_errors_in_order(world: World, coders: Coders) -> None:
    coders.add("a", ("loud", LOUD), session="fresh")
    world.run()
    (row,) = world.fairlane("show", "a")["checks"]
    assert Path(row["log"]).read_text() == "out\nerr\n"
    printed = world.fairlane("logs", "a", "--check", "loud")["transcript"]
    assert [entry["text"] for entry in printed] == ["out", "err"]
