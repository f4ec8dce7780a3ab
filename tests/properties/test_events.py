"""Along random events both planners agree, and nothing is ever held twice or past its cap."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.equivalence.test_planners_agree import follows_the_rules
from tests.properties.oracle import Oracle
from tests.properties.safety import check
from tests.properties.story import EVENTS, Story

SEEDS = st.integers(0, 2**48)
#: Plans come often, so that there is something to happen to.
SCRIPT = st.sampled_from([*EVENTS, *["plan"] * 4, *["add"] * 3, *["start"] * 2, *["wait"] * 2])


class Watch:
    """What has been in flight so far: it may stay above a cap that was lowered, never grow."""

    def __init__(self) -> None:
        self.before: Counter[str] = Counter()

    def look(self, story: Story) -> None:
        facts = Oracle(story.world)
        # What has expired counts until a commit reclaims it.
        flying = [facts.flight(t) for t in story.world.tasks if t.status.in_flight]
        counts = Counter(scope for each in flying for scope in facts.scopes(each.task))
        for scope, count in counts.items():
            cap = facts.cap(scope)
            assert cap is None or count <= max(cap, self.before[scope]), scope
        locks = Counter(lock for each in flying for lock in facts.locks(each.task))
        spaces = Counter((e.task.project, e.space) for e in flying if e.space is not None)
        assert not [name for name, count in (locks + spaces).items() if count > 1]
        slots = Counter(each.worker for each in flying)
        for worker in facts.workers:
            assert worker.slots is None or facts.assumed or slots[worker.name] <= worker.slots
        self.before = counts


def tell(seed: int, script: list[str], step_by_step: bool) -> None:
    story, watch = Story(seed), Watch()
    for event in script:
        story.happen(event)
        watch.look(story)
        check(story.world)
        if step_by_step:
            follows_the_rules(story.world)


@given(SEEDS, st.lists(SCRIPT, max_size=25))
def test_after_every_event_the_planners_agree_and_no_ceiling_is_exceeded(seed, script):
    tell(seed, script, step_by_step=True)


@pytest.mark.soak
@given(SEEDS, st.lists(SCRIPT, min_size=30, max_size=120))
def test_long_stories_stay_within_every_ceiling(seed, script):
    tell(seed, script, step_by_step=False)


def test_a_story_has_every_event_and_something_happens():
    story = Story(7)
    starts = 0
    for name in [*EVENTS, "add", "add", "plan", "start", "wait", "plan"] * 20:
        before = story.fence
        story.happen(name)
        starts += story.fence - before
    assert starts > 10
