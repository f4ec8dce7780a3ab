"""Parts of a compaction: its stages in order, and where the next part begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairlane.store.base import Compacted, Place

#: What is compacted, in this order; last what nothing names any more.
STAGES = ("tasks", "events", "decisions", "usage", "rest")
#: How many events are looked at for each that may go: most of those that stay are young.
LOOKS = 25


class Step(NamedTuple):
    """How many rows a stage changed within its limit, and where it goes on; None: it is through."""

    rows: int
    after: Place | None = None


#: Does a stage after a place in it, and changes about so many rows at most.
Stage = Callable[[Place, int], Step]


def compact_part(stages: Mapping[str, Stage], place: Place, limit: int) -> Compacted:
    """Go on at a place, until the limit is reached or every stage is through."""
    current, after = (place[0], place[1:]) if place else (STAGES[0], ())
    counts = dict.fromkeys(STAGES, 0)
    rest: Place | None = None
    for name in STAGES[STAGES.index(current) :]:
        begin = after if name == current else ()
        step = stages[name](begin, limit) if limit > 0 else Step(0, begin)
        counts[name] = step.rows
        limit -= step.rows
        if step.after is not None:
            rest = (name, *step.after)
            break
    return Compacted(counts["tasks"], counts["events"], counts["decisions"], rest)
