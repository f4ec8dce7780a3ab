"""GitHub issues, as a stand-in for `gh` prints them; tests/trackers asks the real one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane.intake import files
from fairlane.intake.sources import github
from fairlane.intake.sources.base import Found, Where
from fairlane.model.errors import Invalid, TryLater
from tests.conformance.samples.github import URL, issue, issues, named, stand_in


def read(*rows: Any) -> Found:
    return github.read(Where(text=json.dumps(rows)))


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `gh` in the path: the stand-in, or whatever script is put in its place."""
    folder = tmp_path / "bin"
    folder.mkdir()
    stand_in(folder, issues())
    program = folder / "gh"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/gh.py" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return program


def test_gh_is_asked_where_a_folder_is_given(gh, tmp_path):
    found = github.read(Where(tmp_path))
    assert [item.id for item in found.items] == ["12", "13", "14", "15", "16", "17"]


def test_an_older_gh_is_asked_for_fewer_fields(gh, tmp_path):
    text = gh.read_text().replace('"$@"', '"$@" --old')
    gh.write_text(text + "\n")
    found = github.read(Where(tmp_path))
    assert [item.id for item in found.items] == ["12", "13", "14", "15", "16", "17"]
    assert found.items[0].record["prompt"] == "Fix the login form\n\nIssue:\n" + f"{URL}/12"
    assert all(item.needs == () for item in found.items)


def test_a_gh_that_names_one_unknown_field_at_a_time(gh, tmp_path):
    known = '#!/bin/sh\nfor word in "$@"; do case "$word" in\n'
    for field in ("blockedBy", "parent"):
        known += f"*,{field}*) echo 'Unknown JSON field: \"{field}\"' >&2; exit 1;;\n"
    gh.write_text(known + "esac; done\necho '[]'\n")
    assert github.read(Where(tmp_path)) == Found()


@pytest.mark.parametrize(
    ("script", "message", "hint"),
    [
        ("exit 4", "gh is not logged in", "Log in: gh auth login."),
        ("echo 'no git remotes found' >&2; exit 1", "gh: no git remotes found", "Run it by hand"),
        ("exit 3", "gh: exit 3", "Run it by hand"),
        ("sleep 60", "gh did not answer within 0.3 s", "Ask again later"),
    ],
)
def test_a_gh_that_cannot_be_asked_changes_nothing(gh, tmp_path, script, message, hint):
    gh.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(TryLater, match=message) as refused:
        github.read(Where(tmp_path, seconds=0.3 if "sleep" in script else 30))
    assert refused.value.hint.startswith(hint)


def test_a_gh_that_prints_without_end_is_stopped(gh, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FILE_BYTES_MAX", 1 << 20)
    gh.write_text("#!/bin/sh\nexec yes '[]'\n")
    with pytest.raises(Invalid, match="gh printed more than 1,048,576 bytes"):
        github.read(Where(tmp_path))
    gh.write_text("#!/bin/sh\nyes complaint | head -c 3000000 >&2\necho '[]'\n")
    assert github.read(Where(tmp_path)) == Found()


def test_without_gh_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TryLater, match="gh cannot be started"):
        github.read(Where(tmp_path))


def test_a_repository_by_name(gh):
    gh.write_text('#!/bin/sh\necho "$@" > "$0.asked"\necho "[]"\n')
    github.read(Where(Path("acme/shop")))
    asked = gh.with_name("gh.asked").read_text().split()
    assert asked[-2:] == ["--repo", "acme/shop"]
    assert asked[:7] == ["issue", "list", "--state", "open", "--limit", "1000", "--json"]
    for name in ("github.acme.com/acme/shop", "localhost:8443/acme/shop"):
        github.read(Where(Path(name)))
        assert gh.with_name("gh.asked").read_text().split()[-2:] == ["--repo", name]
    home = gh.parent
    github.read(Where(home / "acme" / "shop", home=home))  # as settings name it
    assert gh.with_name("gh.asked").read_text().split()[-2:] == ["--repo", "acme/shop"]
    with pytest.raises(Invalid, match=r"a/b/issues\.json: there is no such file"):
        github.read(Where(Path("a/b/issues.json")))
    with pytest.raises(Invalid, match=r"issues\.json: there is no such file"):
        github.read(Where(Path("issues.json")))


def test_blockers_come_first_and_those_elsewhere_block():
    other = {"number": 7, "state": "OPEN", "url": "https://github.com/acme/api/issues/7"}
    found = read(
        issue(1, "One"),
        issue(7, "Seven"),
        issue(2, "Two", blockedBy=named(1)),
        issue(3, "Three", blockedBy={"nodes": [other]}),
        issue(4, "Four", blockedBy=[{"number": 1, "state": "CLOSED", "url": f"{URL}/1"}]),
    )
    told = {item.id: (item.needs, item.blocked) for item in found.items}
    assert told["2"] == (("1",), "")
    assert told["3"] == ((), "blocked by acme/api#7")
    assert told["4"] == ((), "")


def test_sub_issues_are_a_group_also_of_a_parent_that_is_not_listed():
    found = read(
        issue(1, "Epic", subIssues=named(2)),
        issue(2, "Part"),
        issue(3, "Of another", parent={"number": 9, "title": "Big", "url": f"{URL}/9"}),
        issue(4, "After", blockedBy=named(1)),
        issue(
            5, "Of elsewhere", parent={"number": 4, "url": "https://github.com/acme/api/issues/4"}
        ),
    )
    by_id = {item.id: item for item in found.items}
    assert (by_id["2"].group, by_id["3"].group) == ("1", "9")
    assert by_id["5"].group == "acme/api#4"
    assert by_id["4"].needs == ("1",)
    assert by_id["1"].needs == ("2",)
    assert {(each.id, each.name) for each in found.collections} == {
        ("1", "shop-1"),
        ("9", "shop-9"),
        ("acme/api#4", "api-4"),
    }


@pytest.mark.parametrize(
    ("labels", "hints"),
    [
        (["P0"], {"priority": 25}),
        (["priority: low", "kind:review"], {"priority": 150, "kind": "review"}),
        (["priority/high"], {"priority": 50}),
        (["high", "in progress", "blocked", "kind:"], {}),
    ],
)
def test_labels_are_hints(labels, hints):
    [item] = read(issue(1, "One", labels=[{"name": label} for label in labels])).items
    assert {key: item.record[key] for key in ("priority", "kind") if key in item.record} == hints
    assert str(item.standing) == "open"


def test_what_is_no_list_of_issues_is_refused():
    with pytest.raises(Invalid, match="-: not a list of issues"):
        github.read(Where(text='{"message": "Bad credentials"}'))
    assert [left.reason for left in read({"number": 1}, 7).left_out] == [
        "it has no title",
        "not a record: 7",
    ]


def number(value: int, repository: str = "") -> str:
    return f"{repository}#{value}"


def test_what_the_text_waits_for_comes_first():
    found = read(
        issue(1, "One"),
        issue(2, "Two", body=f"Blocked by {number(1)} and {number(3)}, depends on {number(2)}."),
        issue(3, "Three", state="CLOSED"),
        issue(4, "Four", body=f"Depends on {number(9)}.\nBlocked by {number(7, 'acme/api')}"),
        issue(5, "Five", body=f"Blocked by {number(1, 'Acme/Shop')}", blockedBy=named(1)),
    )
    assert {item.id: (item.needs, item.blocked) for item in found.items if item.id != "3"} == {
        "1": ((), ""),
        "2": (("1", "3"), ""),
        "4": ((), "blocked by acme/shop#9, acme/api#7"),
        "5": (("1",), ""),
    }


#: A `gh` that lists what is in a file, and knows the state of two single issues.
ASKED = """#!/bin/sh
if test "$2" = list; then cat "$(dirname "$0")/issues.json"; exit; fi
echo "$@" >> "$0.asked"
case "$3 $5" in
  "7 acme/api") echo '{"state": "CLOSED"}';;
  "8 acme/api") echo '{"state": "OPEN"}';;
  *) echo "could not resolve" >&2; exit 1;;
esac
"""


def test_what_is_not_listed_is_asked_for_where_gh_can_be_asked(gh, tmp_path):
    gh.write_text(ASKED)
    waits = f"Blocked by {number(3)}, {number(7, 'acme/api')}, {number(8, 'acme/api')}, "
    rows = [issue(1, "One", body=waits + number(9, "acme/gone"))]
    gh.with_name("issues.json").write_text(json.dumps(rows))
    [item] = github.read(Where(tmp_path)).items
    assert item.blocked == "blocked by acme/api#8, acme/gone#9"  # the third is not open
    asked = gh.with_name("gh.asked").read_text().splitlines()
    assert asked[0] == "issue view 7 --repo acme/api --json state"
    assert len(asked) == 3


def test_only_so_many_are_asked_for(gh, tmp_path):
    gh.write_text(ASKED)
    waits = ", ".join(number(at, "acme/gone") for at in range(1, 60))
    rows = [issue(1, "One", body=f"Blocked by {waits}")]
    gh.with_name("issues.json").write_text(json.dumps(rows))
    [item] = github.read(Where(tmp_path)).items
    assert item.blocked.count("acme/gone") == 59
    assert len(gh.with_name("gh.asked").read_text().splitlines()) == 20


def test_a_milestone_is_a_group_where_no_issue_is():
    found = read(
        issue(1, "One", milestone={"number": 3, "title": "Spring 2026"}),
        issue(2, "Epic", milestone={"title": "Spring 2026"}, subIssues=named(3)),
        issue(3, "Part", milestone={"title": "Summer"}),
        issue(4, "None", milestone={"title": ""}),
    )
    assert {item.id: item.group for item in found.items} == {
        "1": "milestone:Spring 2026", "2": "2", "3": "2", "4": None,
    }  # fmt: skip
    assert {(group.id, group.name, group.parent) for group in found.collections} >= {
        ("milestone:Spring 2026", "shop-Spring-2026", None),
        ("2", "shop-2", "milestone:Spring 2026"),
    }


def test_a_part_is_told_of_its_whole():
    found = read(
        issue(1, "Epic", body="All of it.", subIssues=named(2)),
        issue(2, "Part", body="This."),
        issue(3, "Of another", parent={"number": 9, "title": "Big", "url": f"{URL}/9"}),
    )
    prompts = {item.id: str(item.record["prompt"]) for item in found.items}
    assert prompts["2"].endswith("the task above is a part of 1: Epic\n\n> All of it.")
    assert prompts["1"].endswith("come before this one:\n\n- 2: Part")
    assert prompts["3"].endswith("Part of:\n9 Big")
