"""The repository speaks of Fairlane alone, in its own words, and leaves no loose ends."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest

from tests.tidy.repository import ROOT, files, texts

#: Patterns are written so that they do not match themselves.
LOOSE_END = re.compile(r"\b(T[O]DO|FIX[M]E|X[X]X)\b(?!\()")
MACHINE_PATH = re.compile(r"(?<![\w.~}>-])/([w]ork|[r]oot)/")
ISSUE = re.compile(r"(?i:\b(?:issue|ticket|pull request|pr)s? #?\d)|(?<!: )(?<![^\s(])#\d+\b")
REGISTRY = re.compile(r"\b(?:py[p]i\.org|python[h]osted\.org|npm[j]s\.(?:com|org)|crates\.[i]o)\b")
#: Where the product's old name may stand.
OLD_HOMES = (
    "CHANGELOG.md",
    "docs/operating.md",
    "src/fairlane/model/names.py",
    "tests/acceptance/old_home/",
    "tests/acceptance/test_old_homes.py",
)
VAGUE = {"manager", "handler", "util", "helper", "common"}
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>#]+)[^)]*\)")


def hits(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in texts().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize(
    ("pattern", "caught", "fine"),
    [
        (LOOSE_END, "# TO" + "DO later", "every TO" + "DO(agent) comment"),
        (MACHINE_PATH, "see /wo" + "rk/here", "~/work/here or src/work/x"),
        (ISSUE, "as in #" + "12", "color: #" + "333; bug-12"),
        (ISSUE, "fixes issue " + "7", "issue numbers"),
        (REGISTRY, "https://py" + "pi.org/x", "pip install fairlane"),
    ],
)
def test_the_patterns_catch_what_they_should(pattern, caught, fine):
    assert pattern.search(caught)
    assert not pattern.search(fine)


def test_no_loose_ends():
    assert not hits(LOOSE_END)


def test_no_machine_paths():
    assert not hits(MACHINE_PATH)


def test_no_issue_numbers():
    assert not [hit for hit in hits(ISSUE) if ".css:" not in hit]  # colours are written alike


def test_the_old_name_stands_only_where_old_homes_are_taken_in():
    old = re.compile(r"(?i)fair[l]ead")
    where = {hit.partition(":")[0] for hit in hits(old)}
    where |= {path.as_posix() for path in map(PurePosixPath, files()) if old.search(path.name)}
    assert {path for path in where if not path.startswith(OLD_HOMES)} == set()


def test_no_package_registries():
    assert not hits(REGISTRY)


def test_no_vague_file_names():
    vague = []
    for path in files():
        for part in PurePosixPath(path).parts:
            words = {word.rstrip("s") for word in re.split(r"[^a-z]+", part.lower())}
            if words & VAGUE:
                vague.append(path)
    assert not vague


def test_relative_links_in_documents_lead_somewhere():
    broken = []
    for path, text in texts().items():
        if path.endswith(".md"):
            broken += [f"{path}: {target}" for target in links(text) if not leads(path, target)]
    assert not broken, "\n".join(broken)


def test_links_inside_code_are_not_links():
    assert links("[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n[g](h.md#i)") == ["b.md", "h.md"]


def links(text: str) -> list[str]:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [target for target in LINK.findall(prose) if not re.match(r"[a-z]+:", target)]


def leads(path: str, target: str) -> bool:
    return ((ROOT / path).parent / target).exists()
