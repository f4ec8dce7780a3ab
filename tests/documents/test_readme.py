"""README's first five minutes, in a real repository, with a program that acts as Claude does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.acceptance.commands import ROOT
from tests.acceptance.test_docs import BLOCK, commands
from tests.documents.terminal_picture import plain, svg, text_of
from tests.documents.web_repository import Web, make_web

pytestmark = pytest.mark.slow

#: What differs from run to run: times, lengths, names of commits.
CHANGING = (
    (r"\d\d:\d\d:\d\d", "TIME"),
    (r"<?\d+(\.\d+)?(ms|[smhd])\b( \d+[smhd]\b)?", "LONG"),
    (r"\b[0-9a-f]{7,40}\b", "COMMIT"),
    ("(at most|less than) LONG", "LONG"),
    ("just now", "LONG ago"),
)


def shape(text: str) -> str:
    """A text without what differs from run to run, and without its line breaks."""
    for pattern, word in CHANGING:
        text = re.sub(pattern, word, text)
    return " ".join(text.split())


def shown(language: str) -> list[tuple[str, str]]:
    """The commands in blocks of this language, and what README shows for each."""
    section = (ROOT / "README.md").read_text().split("## The first five minutes\n")[1]
    found = BLOCK.finditer(section.split("\n## ")[0])
    return [each for block in found if block[1] == language for each in commands(block[2])]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    """The queue after the first five minutes; its path is short, so that no line is cut."""
    with TemporaryDirectory(prefix="web") as folder:
        web = make_web(Path(folder))
        web.type_in("fairlane init")
        for command, printed in shown("console"):
            assert web.type_in(command) == printed, command
        web.type_in("fairlane run --max-wait 1s")
        yield web


def test_what_came_of_it_is_printed_as_it_is_shown(web):
    served = ("fairlane init", "fairlane up --detach")
    asked = [each for each in shown("text") if each[0] not in served]
    assert len(asked) == 5
    for command, printed in asked:
        assert shape(web.type_in(command)) == shape(printed), command


def test_the_tests_of_t2_pass_because_its_worktree_has_the_fix_of_t1(web):
    folder = web.type_in("fairlane open t2").replace("~", web.environment["HOME"])
    has_it = f"git -C {folder} merge-base --is-ancestor fairlane/t1 HEAD"
    assert web.type_in(f"{has_it} && echo yes") == "yes"
    assert web.type_in("fairlane show t2 --json | grep -c check_failed") == "0"
    told = web.type_in("fairlane show t2")
    for title in ("Answer:", "Work:", "Checks:", "branch     fairlane/t2, from main"):
        assert title in told
    assert re.search(r"passed +make test", told)
    assert web.type_in("git log --format=%s main") == "First version", "nothing is merged unasked"


def test_the_picture_shows_what_a_terminal_shows(web):
    typed = ("fairlane logs t1", "fairlane diff t1")
    text = "\n\n".join(f"$ {command}\n{web.on_terminal(command)}" for command in typed)
    drawn = svg(text, "fairlane logs and fairlane diff on a terminal")
    folder = ROOT / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.svg").write_text(drawn)
    assert text_of(drawn).split() == plain(text).split()
    kept = (ROOT / "docs/pictures/results.svg").read_text()
    assert shape(text_of(kept)) == shape(plain(text))
