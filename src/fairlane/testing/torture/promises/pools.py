"""Pools that were throttled rest for as long as they were told to."""

from __future__ import annotations

from fairlane.model.project import Pool
from fairlane.model.task import Attempt
from fairlane.testing.torture.model import Model
from fairlane.testing.torture.ports import Write
from fairlane.testing.torture.promises.base import Commit, Problem, Problems, promise
from fairlane.testing.torture.promises.gates import PROVED_AFTER

#: Outcomes that tell that an account works.
GOOD_NEWS = ("succeeded", "failed")


def changes(model: Model, write: Write) -> list[tuple[Pool | None, Pool]]:
    """The pools that are about to be written, each with what it was before."""
    known = model.tables[Pool]
    return [(known.get(row.name), row) for row in write.values if isinstance(row, Pool)]


@promise("commit", 1)
def pools_rest(commit: Commit) -> Problems:
    """A cooldown is never made shorter, and only an attempt that began after it ends its row."""
    for before, after in commit.pools:
        if before is None:
            continue
        if (after.until or 0) < (before.until or 0):
            yield Problem(f"the cooldown of pool {after.name} was made shorter")
        if after.hits < before.hits and not _is_proved(commit, before):
            yield Problem(f"pool {after.name} was throttled, and nothing has proved it since")


def _is_proved(commit: Commit, pool: Pool) -> bool:
    """Whether an attempt of the pool that has ended now began after the cooldown, and went well."""
    for _, attempt in commit.attempts:
        mine = commit.model.task(attempt.task).pool == pool.name
        if mine and attempt.leased_at >= (pool.until or 0) and _went_well(attempt):
            return True
    return False


def _went_well(attempt: Attempt) -> bool:
    if attempt.ended_at is None:
        return False
    ran = attempt.ended_at - attempt.leased_at
    works = attempt.outcome != "throttled" and (any(attempt.tokens) or ran >= PROVED_AFTER)
    return works or attempt.outcome in GOOD_NEWS
