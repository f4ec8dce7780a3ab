"""The pages beside the kept workloads are what their command makes, byte for byte."""

from __future__ import annotations

import pytest

from examples.workloads import __main__ as pages
from examples.workloads.findings import FINDINGS, Disproved, holds
from fairlane.simulation.worlds.workload import load_workload

#: The quickest one; the soak makes all of them.
QUICK = "outage"
OTHERS = [name for name in FINDINGS if name != QUICK]


def same(name: str) -> None:
    for file, text in pages.made(name).items():
        assert (pages.HERE / file).read_text(encoding="utf-8") == text, file


@pytest.mark.slow
def test_a_page_is_what_its_command_makes():
    same(QUICK)


@pytest.mark.soak(seconds=10)
@pytest.mark.parametrize("name", OTHERS)
def test_every_page_is_what_its_command_makes(name):
    same(name)


def test_every_workload_is_kept_with_its_page_and_its_picture():
    kept = {path.name for path in pages.HERE.iterdir() if path.suffix in (".toml", ".md", ".svg")}
    assert kept == {f"{name}{ending}" for name in FINDINGS for ending in (".toml", ".md", ".svg")}
    titles = [load_workload(pages.HERE / f"{name}.toml").title for name in FINDINGS]
    assert len(set(titles)) == len(FINDINGS)


def test_a_page_begins_with_the_comment_of_its_workload():
    assert pages.story("# One\n# two.\ntitle = 3\n# Three") == "One two."
    for name in FINDINGS:
        text = (pages.HERE / f"{name}.toml").read_text(encoding="utf-8")
        assert pages.story(text) in (pages.HERE / f"{name}.md").read_text(encoding="utf-8")


def test_a_sentence_that_is_no_longer_true_is_an_error():
    holds(True, True)
    with pytest.raises(Disproved, match="change the sentence"):
        holds(True, False)


def test_an_unknown_workload_is_refused(capsys):
    assert pages.main(["overnigth"]) == 2
    assert "Known: overnight, team, outage, flood, week." in capsys.readouterr().err
