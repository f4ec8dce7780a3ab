"""A tasks.md with four phases."""

from __future__ import annotations

import re
from pathlib import Path

from fairlane.intake.sources.base import Where
from fairlane.testing.source_suite import Sample

TEXT = """\
# Tasks: Photo albums

**Input**: the documents in this folder

## Format: `[ID] [P?] [Story] Description`

## Phase 1: Setup (shared)

- [ ] T001 [P] Create the project as planned
- [ ] T002 [P] Configure the linter
- [ ] T003 [P] Write the configuration in src/config.py

## Phase 2: Foundational (blocks all stories)

- [ ] T004 Set up the database in src/db.py
- [ ] T005 Set up migrations in src/migrations/ (depends on T004)

## Phase 3: User Story 1 - Albums (Priority: P1)

### Tests for User Story 1

- [ ] T006 [P] [US1] Contract test in tests/test_albums.py
- [ ] T007 [US1] Album model in src/albums.py

## Phase 4: Polish

- [X] T008 [P] Choose a licence
- [ ] T009 [P] Write the manual in docs/
"""


def make(folder: Path) -> Sample:
    """Three tasks of the first phase are free; what follows waits for them."""
    feature = folder / "specs" / "001-photo-albums"
    feature.mkdir(parents=True)
    file = feature / "tasks.md"
    file.write_text(TEXT, encoding="utf-8")

    def change(pattern: str, by: str) -> None:
        text, times = re.subn(pattern, by, file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert times == 1
        file.write_text(text, encoding="utf-8")

    def spoil() -> str:
        with file.open("a", encoding="utf-8") as more:
            more.write("- [ ] T001 [P] The same number again\n")
        return "T001"

    return Sample(
        Where(feature),
        ("T001", "T002", "T003"),
        lambda item, title: change(rf"^- \[ \] {item} (\[P\]) .*$", rf"- [ ] {item} \1 {title}"),
        lambda item: change(rf"^- \[ \] {item} ", f"- [x] {item} "),
        spoil,
    )
