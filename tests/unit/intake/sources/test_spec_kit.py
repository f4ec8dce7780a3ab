"""spec-kit: the grammar of a line, and what phases wait for."""

from __future__ import annotations

import pytest

from fairlane.intake.sources import spec_kit
from fairlane.intake.sources.base import Found, Standing, Where
from fairlane.model.errors import Invalid


def read(text: str) -> Found:
    return spec_kit.read(Where(text=text))


def needs(text: str) -> dict[str, tuple[str, ...]]:
    """What each task waits for; of those that are ticked off nobody waits for any."""
    found = read(text)
    done = {item.id for item in found.items if item.standing is Standing.CLOSED}
    return {item.id: tuple(need for need in item.needs if need not in done) for item in found.items}


@pytest.mark.parametrize(
    ("line", "name", "title", "parallel", "standing"),
    [
        ("- [ ] T001 Do it", "T001", "Do it", None, "open"),
        ("- [x] T002 [P] Do it", "T002", "Do it", True, "closed"),
        ("  - [X] T1000 [P] [US2] Do it in a.py", "T1000", "Do it in a.py", True, "closed"),
        ("- [ ] T003 [US1] Do it", "T003", "Do it", None, "open"),
        ("* [ ] T004: Do it", "T004", "Do it", None, "open"),
        ("- [ ] T002a [US1] [P] Do it", "T002a", "Do it", True, "open"),
        ("- [ ] **T010b** [X] [P] [US12] Do it", "T010b", "Do it", True, "open"),
        ("- [ ] T005 [see](a.md) and [P] alone", "T005", "[see](a.md) and [P] alone", None, "open"),
    ],
)
def test_a_line(line, name, title, parallel, standing):
    [item] = read(f"## Phase 1: Setup\n{line}\n").items
    assert (item.id, item.record["title"], str(item.standing)) == (name, title, standing)
    assert item.record.get("parallel") is parallel


def test_without_p_a_task_needs_the_one_before():
    assert needs(
        "## Phase 1: Setup\n"
        "- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 [P] c\n- [ ] T004 d\n"
        "- [ ] T005 [P] e (depends on T001, T002)\n"
    ) == {
        "T001": (), "T002": ("T001",), "T003": (), "T004": ("T003",), "T005": ("T001", "T002"),
    }  # fmt: skip


STORIES = """
## Phase 1: Setup
- [ ] T001 a
## Phase 2: Foundational
- [ ] T002 b
## Phase 3: User Story 1 - Albums (Priority: P1)
- [ ] T003 [US1] c
## Phase 4: User Story 2 - Sharing (Priority: P2)
- [ ] T004 [US2] d
- [ ] T005 [P] [US2] e
## Phase 5: Polish
- [ ] T006 [P] f
## Phase 6: After that
- [ ] T007 [P] g
"""


def test_stories_need_only_what_is_foundational_and_polish_needs_all_stories():
    assert needs(STORIES) == {
        "T001": (),
        "T002": ("T001",),
        "T003": ("T002",),
        "T004": ("T002",),
        "T005": ("T002",),
        "T006": ("T003", "T004", "T005"),
        "T007": ("T006",),
    }
    found = read(STORIES)
    assert [item.record["priority"] for item in found.items] == [100, 100, 100, 110, 110, 100, 100]
    assert [(group.id, group.parent) for group in found.collections][:2] == [
        ("spec", None),
        ("phase-1", "spec"),
    ]
    assert found.items[3].group == "phase-4"


def test_what_is_ticked_off_is_not_waited_for_and_what_stands_before_it_is():
    done = STORIES.replace("[ ] T002", "[x] T002")
    assert needs(done)["T003"] == ("T001",)
    assert needs(done.replace("[ ] T001", "[x] T001"))["T003"] == ()


def test_a_phase_without_tasks_holds_nothing_up():
    text = "## Phase 1: A\n- [ ] T001 a\n## Phase 2: Foundational\n\n## Phase 3: B\n- [ ] T002 b\n"
    assert needs(text)["T002"] == ("T001",)


def test_examples_in_fences_are_no_tasks():
    text = "## Phase 1: A\n- [ ] T001 a\n```text\n- [ ] T001 again\n- [ ] T009 b\n```\n"
    assert list(needs(text)) == ["T001"]
    assert not read(text).left_out


def test_a_bad_line_is_named_with_its_place():
    text = "## Phase 1: A\n- [ ] T001 a\n- [ ] T001 b\n- [ ]T002 c\n- [ ] T003\n- [ ] buy milk\n"
    text += "- [ ] T" + "X" * 3 + " [P] Docs\n"
    found = read(text)
    assert [item.id for item in found.items] == ["T001"]
    assert [(left.reason, left.where) for left in found.left_out] == [
        ("its id appears twice", "-:3"),
        ("not of the form: - [ ] T001 [P] [US1] text", "-:4"),
        ("it says nothing", "-:5"),
        ("it has no id like T001", "-:6"),
        ("not of the form: - [ ] T001 [P] [US1] text", "-:7"),
    ]


def test_a_need_that_is_not_there_blocks():
    [item] = read("- [ ] T001 a (depends on T099)\n").items
    assert (item.needs, item.blocked) == ((), "needs T099, which is not there")


def test_all_features_of_the_folder_specs(tmp_path):
    for name in ("001-albums", "002-sharing"):
        folder = tmp_path / "specs" / name
        folder.mkdir(parents=True)
        (folder / "tasks.md").write_text("## Phase 1: A\n- [ ] T001 a\n- [ ] T002 b\n")
    for place in (tmp_path, tmp_path / "specs"):
        found = spec_kit.read(Where(place))
        assert [item.id for item in found.items][1::2] == ["001-albums/T002", "002-sharing/T002"]
        assert found.items[3].needs == ("002-sharing/T001",)
        assert found.items[3].record["id"] == "002-sharing-T002"
    (tmp_path / "empty").mkdir()
    with pytest.raises(Invalid, match=r"no tasks\.md in it"):
        spec_kit.read(Where(tmp_path / "empty"))


def test_tags_are_kept():
    [item] = read("## Phase 3: User Story 1\n- [ ] T001 [SKIP-CI] [us1] [P] [a b] Do it\n").items
    assert item.record["meta"] == {
        "phase": "Phase 3: User Story 1", "story": "US1", "tags": ["SKIP-CI", "a b"],
    }  # fmt: skip


def test_what_is_indented_under_a_task_is_part_of_its_prompt():
    found = read(
        "## Phase 1: Setup\r\n- [ ] T001 Do it\r\n  - in src/a.py\r\n    - with care\r\n"
        "  - [ ] and a test\r\n\r\n  ```sh\r\n- [ ] T009 make\r\n  ```\r\n"
        "- [ ] T002 [P] Other\r\n\t- [ ] T003 [P] A task of its own\r\n"
        "\t\t- as said\r\n**Checkpoint**: ready\r\n  - no part of it\r\n"
    )
    prompts = {item.id: str(item.record["prompt"]) for item in found.items}
    assert list(prompts) == ["T001", "T002", "T003"]
    assert "- in src/a.py\n    - with care\n  - [ ] and a test\n\n  ```sh" in prompts["T001"]
    assert "T009 make\n  ```\n\nThis is T001 " in prompts["T001"]
    assert prompts["T002"].startswith("Other\n\nThis is T002 ")
    assert prompts["T003"].startswith("A task of its own\n\n- as said\n\nThis is T003 ")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("(depends on T001, T002a)", ("T001", "T002a")),
        ("(Depends on T001 and T003)", ("T001", "T003")),
        ("(depends on T001-T003)", ("T001", "T003")),
        ("(depends on T001 to T004)", ("T001", "T004", "T003")),
        ("\n  - depends on: T004", ("T004",)),
        ("which depends on nothing; T001 is near", ()),
    ],
)
def test_what_a_task_depends_on(words, wanted):
    lines = "".join(f"- [ ] {name} [P] a\n" for name in ("T001", "T002a", "T003", "T004"))
    assert needs(f"## Phase 1: A\n{lines}- [ ] T009 [P] b {words}\n")["T009"] == wanted


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Setup (Shared)", "Foundational (blocks all user stories: US1, US2)"),
        ("Setup", "Foundational - blocks every user story"),
        ("Set-up of User Story tooling", "\u26a0 Foundational"),
    ],
)
def test_a_story_is_one_by_its_heading(first, second):
    text = (
        f"## Phase 1: {first}\n- [ ] T001 [US1] a\n## Phase 2: {second}\n- [ ] T002 [US1] [P] b\n"
        "## Phase 3: \U0001f3af User Story 1 - Setup wizard (Priority: P1)\n- [ ] T003 [P] c\n"
        "## Phase 4: Sharing (Priority: P2)\n- [ ] T004 [P] d\n"
        "## Phase 5: Albums\n- [ ] T005 [US3] [P] e\n"
        "## Phase 6: Polish of all user stories\n- [ ] T006 [US1] [P] f\n"
    )
    assert needs(text) == {
        "T001": (), "T002": ("T001",), "T003": ("T002",), "T004": ("T002",), "T005": ("T002",),
        "T006": ("T003", "T004", "T005"),
    }  # fmt: skip


def test_comments_are_no_tasks_and_other_headings_are_barriers_too():
    text = (
        "<!--\n- [ ] T009 sample\n-->\n## Setup\n- [ ] T001 a <!-- x -->\n## Core\n- [ ] T002 b\n"
    )
    found = read(text)
    assert [(item.id, item.where, item.needs) for item in found.items] == [
        ("T001", "-:5", ()),
        ("T002", "-:7", ("T001",)),
    ]


def test_a_task_after_one_that_is_done_still_waits_for_what_is_open():
    assert needs("## A\n- [ ] T001 a\n- [x] T002 b\n- [ ] T003 c\n")["T003"] == ("T001",)


def test_a_task_may_go_on_in_the_next_line():
    text = "- [ ] T001 a\n- [ ] T002 [P] Extend the `Version` in\n      `src/types.ts` (depends\n"
    [_, item] = read(text + "      on T001;\n      see the plan)\n").items
    assert item.needs == ("T001",)
    assert str(item.record["prompt"]).startswith(
        "Extend the `Version` in\n`src/types.ts` (depends\non T001;\nsee the plan)\n\nThis is"
    )
