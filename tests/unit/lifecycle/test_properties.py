"""Whatever happens, and in whatever order: what must never be true is never true."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlane.lifecycle.transitions import TRANSITIONS, IllegalTransition, Stop, request_stop
from fairlane.model.event import Happening
from fairlane.model.instant import HOUR, SECOND
from fairlane.model.task import FAILURES, Lease, Outcome, Status, Task
from tests.unit.lifecycle.story import Told, told

PRESETS = ("balanced", "depth-first", "serial-lanes", "batch-dispatch", "fail-closed")


def check(t: Told, most: int) -> None:
    """The invariants of one task."""
    task = t.task
    assert (task.lease is not None) == task.status.in_flight
    assert (task.status is Status.PARKED) == (task.parked_at is not None)
    if task.status in (Status.PARKED, Status.CANCELED):
        assert task.reason
    elif task.reason:  # a queued task that has failed says what went wrong
        assert task.status is Status.QUEUED
        assert task.failures or task.check_rounds
    assert task.failures <= most + task.half_opened
    assert task.launch_failures <= task.failures
    assert not task.stop_requested or task.status.in_flight
    assert task.backoff_until is None or task.status is Status.QUEUED
    if task.status.final:
        assert not (task.failures)
        assert not (task.launch_failures)
        assert not (task.setbacks)
        assert not (task.releases)


def check_step(t: Told, before: Task, happening: Happening) -> None:
    """What one step may change."""
    task, ended = t.task, t.last
    assert ended.freed == (before.status.in_flight and not task.status.in_flight)
    assert task.attempts - before.attempts == (happening is Happening.LEASED)
    failed = ended.outcome in FAILURES
    if ended.outcome is Outcome.CHECK_FAILED:
        failed = task.failures > before.failures
        assert failed or task.check_rounds == before.check_rounds + 1 <= t.policy.checks.rounds
        assert not failed or task.check_rounds == 0
    if failed:
        assert task.failures == before.failures + 1
    if ended.freed and task.status is Status.QUEUED and not failed:
        assert (task.failures, task.entry.ready_since) == (
            before.failures,
            before.entry.ready_since,
        )


def tell(t: Told, happening: Happening) -> None:
    if happening is Happening.LEASED:
        t.leased()
    else:
        resumes = t.task.attempts % 3 > 0
        t.happens(happening, detail="x", lease=Lease("l", t.fence), resumes=resumes)


@given(st.sampled_from(PRESETS), st.none() | st.integers(1, 4), st.data())
def test_any_legal_sequence_keeps_the_invariants(preset, own_most, data):
    t = told(preset, task=Task("t1", seq=1, max_attempts=own_most), retry__jitter=0.1)
    most = own_most or t.policy.retry.max_attempts
    for _ in range(data.draw(st.integers(1, 40), "steps")):
        t.now += data.draw(st.sampled_from([0, SECOND, HOUR]), "passes")
        before = t.task
        if before.status.in_flight and data.draw(st.integers(0, 5), "stop") == 0:
            t.task = request_stop(before, data.draw(st.sampled_from(Stop), "kind"))
            before = t.task
        can = [happening for status, happening in TRANSITIONS if status is before.status]
        happening = data.draw(st.sampled_from(can), "happens")
        try:
            tell(t, happening)
        except IllegalTransition:
            assert t.task == before  # a condition of the rule is not met: nothing changed
            continue
        check(t, most)
        check_step(t, before, happening)


@given(st.lists(st.sampled_from(["failed", "launch_failed", "lost", "throttled"]), max_size=30))
def test_the_same_story_twice_gives_the_same_task(ends):
    def play() -> object:
        t = told("balanced", retry__jitter=0.5, breaker__launch_failures="none")
        for end in ends:
            if t.task.status is Status.QUEUED:
                t.attempt(end)
        return t.task

    assert play() == play()
