"""Named folders that tasks use one after the other, and the repository itself."""

from __future__ import annotations

import pytest

from fairlane.model.errors import Refused
from tests.workspaces.yard import Yard, commit, git, look

pytestmark = pytest.mark.slow


@pytest.fixture
def pool(yard: Yard) -> Yard:
    yard.workspaces(mode="pool")
    yard.change(workspaces=("w1", "w2"))
    return yard


def test_a_named_folder_is_made_at_its_first_use(pool: Yard) -> None:
    before = look(pool.repo)
    place = pool.work("t1", workspace="w1")
    assert place.path == pool.home / "worktrees" / "web" / "w1"
    assert pool.finish("t1", "w1") == ""
    assert pool.files("fairlane/t1") == ["README", "src/code", "t1"]
    assert look(pool.repo) == before


def test_the_next_task_starts_from_the_base_and_not_from_the_last_one(pool: Yard) -> None:
    pool.work("t1", workspace="w1")
    pool.finish("t1", "w1")
    place = pool.work("t2", workspace="w1")
    assert not (place.path / "t1").exists()
    assert pool.finish("t2", "w1") == ""
    assert pool.log("fairlane/t2") == ["t2", "first"]


def test_what_a_failed_task_left_is_kept_on_its_branch(pool: Yard) -> None:
    pool.work("t1", workspace="w1")
    place = pool.prepare("t2", "w1")
    assert git(place.path, "status", "--porcelain") == ""
    assert pool.log("fairlane/t1") == ["Left over by an earlier task", "first"]
    assert pool.files("fairlane/t1") == ["README", "src/code", "t1"]


def test_a_retry_in_the_same_folder_finds_everything(pool: Yard) -> None:
    place = pool.work("t1", workspace="w1")
    assert pool.prepare("t1", "w1") == place
    assert (place.path / "t1").exists()
    assert pool.log("fairlane/t1") == ["first"]


def test_a_retry_in_another_folder_takes_its_work_along(pool: Yard) -> None:
    pool.work("t1", workspace="w1")
    place = pool.prepare("t1", "w2")
    assert (place.path / "t1").exists()
    assert git(place.path, "rev-parse", "--abbrev-ref", "HEAD") == "fairlane/t1"
    other = pool.work("t2", workspace="w1")
    assert not (other.path / "t1").exists()
    assert pool.finish("t1", "w2") == ""
    assert pool.finish("t2", "w1") == ""


def test_a_task_moves_between_its_own_worktree_and_a_pool(yard: Yard) -> None:
    yard.work("t1")
    yard.change(workspaces=("w1",))
    assert (yard.prepare("t1", "w1").path / "t1").exists()


def test_changes_on_no_branch_are_not_lost(pool: Yard) -> None:
    place = pool.prepare("t1", "w1")
    git(place.path, "checkout", "-q", "--detach")
    (place.path / "precious").write_text("x")
    with pytest.raises(Refused, match="is on no branch"):
        pool.prepare("t2", "w1")
    assert (place.path / "precious").exists()


def test_the_base_of_a_pool_is_looked_up_for_every_task(pool: Yard) -> None:
    pool.prepare("t1", "w1")
    (pool.repo / "later").write_text("")
    commit(pool.repo, "later")
    assert (pool.prepare("t2", "w1").path / "later").exists()
    assert not (pool.prepare("t1", "w1").path / "later").exists()


def test_shared_is_the_repository_itself(yard: Yard) -> None:
    yard.workspaces(mode="shared")
    place = yard.work("t1", workspace="shared")
    assert (place.path, place.branch) == (yard.repo, None)
    assert yard.finish("t1", "shared") == ""
    assert yard.log("main") == ["first"]  # what to do with it is left to its owner
    assert (yard.repo / "t1").exists()
    assert yard.branches() == ["main"]


def test_named_folders_win_over_the_mode(yard: Yard) -> None:
    yard.workspaces(mode="shared")
    yard.change(workspaces=("w1",))
    assert yard.prepare("t1", "w1").path == yard.home / "worktrees" / "web" / "w1"
