"""A file is written whole, and never over what somebody else wrote meanwhile."""

from __future__ import annotations

import os

import pytest

from fairlane.intake import atomic_write
from fairlane.model.errors import Refused


def test_the_file_is_another_with_the_same_permissions(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with path.open("rb") as reader:  # whoever reads it goes on reading the old one
        assert atomic_write.change(path, lambda old: old + b" and new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"old and new"
    assert path.stat().st_mode & 0o7777 == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["a.md"]


def test_what_is_the_same_is_not_written(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    before = path.stat()
    assert not atomic_write.change(path, lambda old: old)
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_change_of_somebody_else_is_followed(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    seen: list[bytes] = []

    def turn(old: bytes) -> bytes:
        if not seen:
            path.write_bytes(b"theirs")
        seen.append(old)
        return old + b" and ours"

    assert atomic_write.change(path, turn)
    assert seen == [b"old", b"theirs"]
    assert path.read_bytes() == b"theirs and ours"


def test_a_file_that_never_rests_is_left_alone(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"0")

    def turn(old: bytes) -> bytes:
        path.write_bytes(b"%d" % (int(old) + 1))
        return b"-1"

    with pytest.raises(Refused, match="changes all the time"):
        atomic_write.change(path, turn)
    assert path.read_bytes() == b"%d" % atomic_write.TRIES
    assert [each.name for each in tmp_path.iterdir()] == ["a.md"]


def test_a_file_that_goes_away_does_not_come_back(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"old")

    def turn(old: bytes) -> bytes:
        path.unlink()
        return old + b" and ours"

    with pytest.raises(Refused, match="has gone away"):
        atomic_write.change(path, turn)
    assert list(tmp_path.iterdir()) == []


def test_a_link_within_the_folder_stays_one(tmp_path):
    path, link = tmp_path / "a.md", tmp_path / "link.md"
    path.write_bytes(b"old")
    link.symlink_to("a.md")
    assert atomic_write.change(link, lambda old: old + b"!", within=tmp_path)
    assert link.is_symlink()
    assert path.read_bytes() == b"old!"


def test_a_link_that_leads_out_is_refused(tmp_path):
    outside, inside = tmp_path / "outside.md", tmp_path / "in"
    outside.write_bytes(b"theirs")
    inside.mkdir()
    link = inside / "link.md"
    link.symlink_to(outside)
    with pytest.raises(Refused) as caught:
        atomic_write.change(link, lambda old: old + b"!", within=inside)
    assert caught.value.message == f"{link} leads out of {inside}"
    assert outside.read_bytes() == b"theirs"


def test_what_a_killed_writer_left_is_cleared(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    (tmp_path / ".a.md.fairlane").symlink_to(path)
    assert atomic_write.change(path, lambda old: old + b"!")
    assert path.read_bytes() == b"old!"
    assert [each.name for each in tmp_path.iterdir()] == ["a.md"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    (tmp_path / ".a.md.fairlane").mkdir()  # as good as no permission, which an owner root has
    with pytest.raises(Refused, match="cannot be written: Is a directory") as caught:
        atomic_write.change(path, lambda old: old + b"!")
    assert caught.value.hint.startswith("Nothing was changed")
    assert path.read_bytes() == b"old"


def test_a_file_that_is_read_only_stays_as_it_is(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(Refused, match=r"a\.md is read-only") as refused:
        atomic_write.change(path, lambda old: old + b" and new")
    assert refused.value.hint == "It is told again later: chmod u+w a.md."
    assert path.read_bytes() == b"old"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_stays_with_its_owner(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    os.chown(path, 65534, 65534)
    atomic_write.change(path, lambda old: old + b" and new")
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)
