"""Every preset sets every key, and says what its row in the documentation says."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fairlane.model.instant import HOUR, MINUTE, SECOND
from fairlane.policy import Policy, schema
from fairlane.policy.edit import diff
from fairlane.policy.load import preset_layer

NAMES = ["balanced", "batch-dispatch", "depth-first", "fail-closed", "fair-share", "serial-lanes"]

#: In what each preset differs from `balanced`: nothing else.
SETS = {
    "depth-first": {
        "order": ["score", "age"],
        "caps.all": 50,
        'caps."kind:plan"': 2,
        'caps."kind:spec"': 5,
        'caps."kind:phase"': 20,
        'caps."kind:code"': 50,
        "share.mode": "none",
        "score.age_from": "created",
        "overdue.after": "none",
        "retry.max_attempts": 20,
        "retry.base": "0s",
        "breaker.launch_failures": "none",
        "breaker.half_open_after": "none",
    },
    "serial-lanes": {
        "order": ["age"],
        "caps.all": 1,
        'caps."kind:*"': 1,
        "overdue.after": "none",
        "locks.parallel_default": False,
        "retry.max_attempts": 6,
        "breaker.launch_failures": "none",
        "breaker.half_open_after": "none",
        "backpressure.soft": "auto",
        "backpressure.hard": "auto",
    },
    "fair-share": {
        "order": ["guarantee", "share", "priority", "age"],
        "caps.all": "none",
        'caps."project:*"': 2,
        "share.mode": "deficit",
        "share.frozen": True,
        "share.guarantee_counts": "completions",
        "score.age_from": "created",
        "overdue.after": "none",
        "breaker.half_open_after": "none",
    },
    "batch-dispatch": {
        "order": ["age"],
        "capacity.batch": 1,
        "cycle.interval": "3m",
        "caps.all": 5,
        "score.age_from": "created",
        "overdue.after": "none",
        "breaker.half_open_after": "none",
    },
    "fail-closed": {
        "order": ["priority", "age"],
        "caps.all": 1,
        "score.age_from": "created",
        "overdue.after": "none",
        "retry.base": "1s",
        "retry.cap": "1m",
        "retry.jitter": 0,
        "breaker.launch_failures": "none",
        "breaker.half_open_after": "none",
    },
}


def test_the_shipped_ones():
    shipped = Policy.presets()
    assert list(shipped) == NAMES
    assert all(description and "\n" not in description for description in shipped.values())


@pytest.mark.parametrize("name", NAMES)
def test_sets_every_key_that_cannot_be_absent(name):
    said = preset_layer(name).values
    assert set(schema.ROWS) - schema.OPTIONAL <= set(said)
    assert {f"score.kind.{kind}" for kind in schema.SCORED_KINDS} <= set(said)
    assert Policy.preset(name).preset_name == name


@pytest.mark.parametrize("name", SETS)
def test_differs_from_balanced_as_documented(name):
    found = diff(Policy.preset("balanced"), Policy.preset(name))
    assert {each.key: each.b for each in found} == SETS[name]


def test_balanced():
    policy = Policy.preset("balanced")
    assert policy.order == ("guarantee", "share", "overdue", "priority", "score", "age")
    assert (policy.capacity.mode, policy.capacity.batch, policy.capacity.spawn_delay) == (
        "deferred",
        None,
        0,
    )
    assert policy.cycle.interval == SECOND
    assert policy.caps == {"all": 4}
    assert policy.share.mode == "virtual-time"
    assert (policy.share.frozen, policy.share.window) == (False, 24 * HOUR)
    assert (policy.share.guarantee, policy.share.guarantee_counts) == (1, "starts")
    assert (policy.share.idle_credit, policy.share.default_estimate) == (200_000, 100_000)
    assert policy.score.kind == {"plan": 40, "spec": 60, "phase": 80, "code": 100, "*": 50}
    assert policy.score.base("code") == 100
    assert policy.score.base("review") == 50
    score = policy.score
    assert (score.age_per_minute, score.age_max, score.age_from) == (1, 50, "ready")
    assert (score.depth_per_level, score.retry_penalty, score.retry_penalty_max) == (10, 5, 30)
    assert policy.overdue.after == 24 * HOUR
    assert (policy.attempt.timeout, policy.attempt.silence) == (4 * HOUR, None)
    assert (policy.readiness.parent, policy.readiness.upstream) == ("done", "hold")
    assert (policy.locks.serial, policy.locks.parallel_default) == ("group+kind", True)
    assert policy.lease.ttl == 5 * MINUTE
    retry = policy.retry
    assert (retry.max_attempts, retry.base, retry.cap) == (3, 30 * SECOND, 5 * MINUTE)
    assert (retry.factor, retry.jitter) == (Fraction(2), Fraction(1, 10))
    assert (policy.breaker.launch_failures, policy.breaker.half_open_after) == (3, 15 * MINUTE)
    assert policy.backpressure_limits() == (None, None)
    assert policy.budget == ()
    cooldown = policy.cooldown
    assert (cooldown.base, cooldown.exponent_max, cooldown.probe) == (2 * SECOND, 6, 1)
    assert (policy.limits.children, policy.limits.depth) == (50, 8)
    assert policy.usage.count == ("input", "output", "cache_write")
    assert policy.recovery.stale_after == 10 * MINUTE
    assert policy.history.keep == 30 * 24 * HOUR


@pytest.mark.parametrize(("cap", "soft", "hard"), [(1, 8, 16), (2, 8, 16), (3, 12, 24)])
def test_automatic_backpressure(cap, soft, hard):
    policy = Policy.preset("serial-lanes", {"caps": {"all": cap}})
    assert policy.backpressure_limits() == (soft, hard)


@pytest.mark.parametrize(
    ("overrides", "limits"),
    [
        ({"backpressure.soft": 1, "backpressure.hard": 2}, (1, 2)),
        ({"backpressure.soft": 3}, (3, 6)),
        ({"backpressure.soft": "none"}, (None, 16)),
        ({"backpressure.hard": "none"}, (8, None)),
        ({"caps.all": "none"}, (None, None)),
        ({"caps.all": 0}, (8, 16)),
    ],
)
def test_backpressure_that_is_partly_set(overrides, limits):
    assert Policy.preset("serial-lanes", overrides).backpressure_limits() == limits


def test_direct_mode_of_batch_dispatch():
    policy = Policy.preset("batch-dispatch", {"capacity.mode": "direct", "caps.all": "none"})
    assert policy.capacity.mode == "direct"
    assert "all" not in policy.caps
