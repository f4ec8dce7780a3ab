"""spec-kit: the grammar of a line, and what phases wait for."""

from __future__ import annotations

import pytest

from fairlane.intake.sources import spec_kit
from fairlane.intake.sources.base import Found, Where
from fairlane.model.errors import Invalid


def read(text: str) -> Found:
    return spec_kit.read(Where(text=text))


def needs(text: str) -> dict[str, tuple[str, ...]]:
    return {item.id: item.needs for item in read(text).items}


@pytest.mark.parametrize(
    ("line", "name", "title", "parallel", "standing"),
    [
        ("- [ ] T001 Do it", "T001", "Do it", None, "open"),
        ("- [x] T002 [P] Do it", "T002", "Do it", True, "closed"),
        ("  - [X] T1000 [P] [US2] Do it in a.py", "T1000", "Do it in a.py", True, "closed"),
        ("- [ ] T003 [US1] Do it", "T003", "Do it", None, "open"),
        ("* [ ] T004: Do it", "T004", "Do it", None, "open"),
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
