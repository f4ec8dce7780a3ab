"""Whoever writes into a card may be killed at any moment: the card is whole, before or after."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from fairlane.intake.sources import cards
from fairlane.intake.sources.base import Where, WriteBack
from tests.faults.children import ROOT, Points

CARD = (
    "---\nagent_flow: implement\nagent_status: idle  # ours\n---\n\n# A card\n\n"
    + "Body, " * 20_000
    + "\n\nHistory:\n- 2026-01-29 - Created\n"
)
STORY = ("queued", "running", "parked")
#: Tells one card the same story again and again, and says when it has begun.
WRITER = """
import itertools, sys
from pathlib import Path
from fairlane.intake.sources import cards
from fairlane.intake.sources.base import Where
from tests.faults.test_kill_cards import STORY, news
print("begun", flush=True)
for status in itertools.cycle(STORY):
    cards.write(Where(Path(sys.argv[1])), [news(status)])
"""


def news(status: str) -> WriteBack:
    return WriteBack("card", "t", status, 0, "failed: exit 1", {})


def said(text: str) -> str:
    """What a whole card says; a torn one has no end."""
    assert text.startswith("---\nagent_flow: implement\nagent_status: ")
    assert "Body, " * 20_000 + "\n\nHistory:\n- 2026-01-29 - Created\n" in text
    assert text.endswith("\n")
    found = re.search(r"^agent_status: (\w+)  # ours$", text, re.MULTILINE)
    assert found
    lines = [line for line in text.splitlines() if "Fairlane: " in line]
    last = re.search(r"Fairlane: (\w+)", lines[-1]) if lines else None
    assert found[1] == (last[1] if last else "idle")
    return found[1]


def write_until(path: Path, at: int) -> bool:
    """A child tells the card once, and ends itself at a point; whether it got to the end."""
    child = os.fork()
    if child == 0:
        points = Points(at)
        sys.addaudithook(points._audit)
        cards.write(Where(path), [news("queued")])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status)


def test_a_card_is_whole_at_every_point(tmp_path):
    path = tmp_path / "card.md"
    statuses = []
    for at in count(1):
        path.write_text(CARD)
        through = write_until(tmp_path, at)
        statuses.append(said(path.read_text()))
        cards.write(Where(tmp_path), [news("queued")])  # the next one makes up for it
        assert said(path.read_text()) == "queued"
        assert [each.name for each in tmp_path.iterdir()] == ["card.md"]
        if through:
            break
    assert at > 3
    assert statuses[0] == "idle"
    assert statuses[-1] == "queued"


@pytest.mark.slow
def test_a_card_is_whole_whenever_its_writer_is_killed(tmp_path):
    path = tmp_path / "card.md"
    path.write_text(CARD)
    seen = set()
    for wait in range(10):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdout=subprocess.PIPE,
        )  # fmt: skip
        with writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"begun\n"
            lines = len(path.read_text().splitlines())
            while len(path.read_text().splitlines()) < lines + 1 + wait % 3:
                said(path.read_text())
            writer.send_signal(signal.SIGKILL)
        seen.add(said(path.read_text()))
        assert {each.name for each in tmp_path.iterdir()} <= {"card.md", ".card.md.fairlane"}
    assert len(seen) > 1
