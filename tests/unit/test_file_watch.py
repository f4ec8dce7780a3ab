"""The kernel tells of writes to files and in folders, whichever way they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlane.clock import SYSTEM
from fairlane.file_watch import TreeWatch
from fairlane.intake import atomic_write


@pytest.fixture
def watch() -> Iterator[TreeWatch]:
    found = TreeWatch()
    yield found
    found.close()


def told(watch: TreeWatch) -> set[Path]:
    return watch.changed() if SYSTEM.wait(0.2, watch) else set()


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("more\n")


def replace(path: Path) -> None:
    beside = path.with_name("beside")
    beside.write_text("new\n")
    beside.replace(path)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [append, replace, remove])
def test_a_file_is_watched_however_it_is_written(
    watch: TreeWatch, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    file, other = tmp_path / "tasks.jsonl", tmp_path / "other"
    file.write_text("one\n")
    assert watch.add(file)
    other.write_text("not this one\n")
    assert told(watch) == set()
    change(file)
    assert told(watch) == {file}


def test_a_file_that_is_not_there_yet_is_noticed_when_it_comes(
    watch: TreeWatch, tmp_path: Path
) -> None:
    assert watch.add(tmp_path / "later")
    (tmp_path / "later").write_text("here\n")
    assert told(watch) == {tmp_path / "later"}
    assert not watch.add(tmp_path / "no" / "folder")


def test_a_folder_is_watched_to_the_bottom_and_as_it_grows(
    watch: TreeWatch, tmp_path: Path
) -> None:
    root = tmp_path / "cards"
    deep = root / "phase-1" / "backlog"
    deep.mkdir(parents=True)
    assert watch.add(root)
    (deep / "a.md").write_text("a")
    assert told(watch) == {root}
    (root / "phase-2" / "done").mkdir(parents=True)
    assert told(watch) == {root}
    (root / "phase-2" / "done" / "b.md").write_text("b")
    assert told(watch) == {root}


def test_a_folder_that_is_replaced_is_still_watched(watch: TreeWatch, tmp_path: Path) -> None:
    root = tmp_path / "cards"
    root.mkdir()
    assert watch.add(root)
    root.rename(tmp_path / "old")
    assert told(watch) == {root}
    root.mkdir()
    assert told(watch) == {root}
    (root / "a.md").write_text("a")
    assert told(watch) == {root}


def test_what_is_no_work_is_not_watched(watch: TreeWatch, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert watch.add(tmp_path)
    (tmp_path / ".git" / "index").write_text("x")
    assert told(watch) == set()


def test_a_link_is_followed(watch: TreeWatch, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "tasks.jsonl", tmp_path / "link"
    real.write_text("one\n")
    link.symlink_to(real)
    assert watch.add(link)
    append(real)
    assert told(watch) == {link}


def test_what_this_process_wrote_itself_is_no_news(watch: TreeWatch, tmp_path: Path) -> None:
    card = tmp_path / "a.md"
    card.write_text("old\n")
    assert watch.add(tmp_path)
    assert atomic_write.change(card, lambda content: b"ours\n")
    assert watch.changed(atomic_write.is_ours) == set()
    card.write_text("theirs\n")
    assert watch.changed(atomic_write.is_ours) == {tmp_path}
    assert atomic_write.change(card, lambda content: b"ours again\n")
    card.unlink()
    assert watch.changed(atomic_write.is_ours) == {tmp_path}
