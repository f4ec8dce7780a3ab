"""One value for one set of rules, however it was written."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.instant import DAY, HOUR, MINUTE
from fairlane.policy import Policy, is_calendar, schema, window_micros
from fairlane.policy.policy import MayAdd

BUDGETS = [
    {"scope": "all", "tokens": 100_000, "window": "24h"},
    {"scope": "project:web", "usd": "12.50", "window": "day", "warn_at": 0.5},
    {"scope": "pool:anthropic", "usd": 20, "on_exceeded": "stop"},
]
RICH = {
    "preset": "fair-share",
    "caps": {"all": 8, "kind:code": 2, "label:os=linux": 1, "kind:a.b": 3},
    "score": {"kind": {"plan": "none", "review": -5}},
    "budget": BUDGETS,
    "retry": {"factor": 1.5, "jitter": 0.123456},
    "attempt": {"silence": "90s", "timeout": "none"},
    "usage": {"count": ["cache_read", "input"]},
    "backpressure": {"soft": "auto", "hard": 99},
}


def test_absent_file_is_balanced(tmp_path):
    assert Policy.load(tmp_path / "policy.toml") == Policy.preset("balanced")


def test_file_is_preset_and_overrides(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_bytes(b'preset = "depth-first"\r\n[caps]\r\nall = 8\r\n"kind:x" = 1\r\n')
    policy = Policy.load(str(path))
    assert policy.preset_name == "depth-first"
    assert policy.caps["all"] == 8
    assert (policy.caps["kind:plan"], policy.caps["kind:x"]) == (2, 1)


@pytest.mark.parametrize("mapping", [{"preset": name} for name in Policy.presets()] + [RICH])
def test_document_parses_back(mapping):
    policy = Policy.parse(mapping)
    document = json.loads(json.dumps(policy.document()))
    again = Policy.parse(document)
    assert again == policy
    assert again.digest() == policy.digest()
    assert again.document() == document


def test_what_no_plan_reads_is_not_in_the_digest():
    """As an older version made it, which knew no `attempt.may_add`: its decisions replay."""
    older = Policy.preset("balanced").document()
    del older["attempt"]["may_add"], older["carry"], older["context"], older["checks"]
    text = json.dumps(older, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert Policy.preset("balanced").digest() == digest == Policy.parse(older).digest()
    wide = Policy.preset("balanced", {"attempt.may_add.command": True})
    assert (wide.digest(), wide == Policy.preset("balanced")) == (digest, False)


def test_document_is_canonical():
    document = Policy.parse(RICH).document()
    assert document["caps"] == {
        "all": 8,
        "kind:a.b": 3,
        "kind:code": 2,
        "label:os=linux": 1,
        "project:*": 2,
    }
    may_add = {"agents": "same", "command": False, "env": False}
    assert document["attempt"] == {"timeout": "none", "silence": "1m30s", "may_add": may_add}
    assert document["retry"]["jitter"] == 0.123456
    assert document["score"]["kind"]["plan"] == "none"
    assert document["usage"]["count"] == ["input", "cache_read"]
    assert document["budget"][1] == {
        "scope": "project:web",
        "usd": "12.5",
        "window": "day",
        "warn_at": 0.5,
        "on_exceeded": "finish",
    }
    assert "preset" not in document


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"lease.ttl": "60s"}, {"lease.ttl": "1m"}),
        ({"caps.all": 5}, {"caps": {"all": 5}}),
        ({'caps."kind:code"': 2}, {"caps.kind:code": 2}),
        ({"caps.'kind:code'": 2}, {"caps": {"kind:code": 2}}),
        ({"retry.jitter": 0.25}, {"retry": {"jitter": Decimal("0.250")}}),
        ({"retry.jitter": 0.3}, {"retry": {"jitter": Fraction(3, 10)}}),
        ({"order": ["score", "age"]}, {"order": "score age"}),
        ({"usage.count": ["output", "input"]}, {"usage.count": ["input", "output"]}),
        ({"caps.kind:b": 1, "caps.kind:a": 2}, {"caps.kind:a": 2, "caps.kind:b": 1}),
        (
            {"budget": [{"scope": "all", "usd": 0.1, "window": "60m"}]},
            {"budget": [{"scope": "all", "usd": "0.100000", "window": "1h"}]},
        ),
        ({"caps.all": "none"}, {"caps": {"all": None}}),
        ({"score.kind.plan": 1}, {"score": {"kind.plan": 1}}),
    ],
)
def test_the_digest_is_of_the_rules(a, b):
    one, other = Policy.preset("balanced", a), Policy.preset("balanced", b)
    assert one == other
    assert one.digest() == other.digest() != Policy.preset("balanced").digest()


def test_the_digest_forgets_the_preset():
    document = Policy.preset("fail-closed").document()
    policy = Policy.parse(document)
    assert policy.preset_name == "balanced"
    assert policy.digest() == Policy.preset("fail-closed").digest()


def test_a_replaced_policy_has_its_own_digest():
    policy = Policy.preset("balanced")
    before = policy.digest()
    changed = dataclasses.replace(policy, caps={"all": 5})
    assert changed.digest() == policy.with_overrides({"caps.all": 5}).digest() != before


def test_the_policy_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Policy.preset("balanced").order = ()  # type: ignore[misc]


@pytest.mark.parametrize("key", sorted(schema.OPTIONAL))
def test_none_removes(key):
    section, _, name = key.partition(".")
    policy = Policy.preset("serial-lanes", {"capacity.batch": 2, "attempt.silence": "5m"})
    policy = policy.with_overrides({key: "none"})
    held = getattr(policy, section)
    assert (held.get(name) if section == "caps" else getattr(held, name)) is None


def test_none_removes_named_entries_and_budgets():
    policy = Policy.parse({**RICH, "caps": {"project:*": "none"}})
    assert policy.caps == {}
    assert "plan" not in policy.score.kind
    assert policy.score.base("plan") == 50
    assert policy.with_overrides({"score.kind": {"*": "none"}}).score.base("plan") == 0
    assert policy.with_overrides({"budget": "none"}).budget == ()


def test_none_that_is_a_value():
    policy = Policy.preset(
        "balanced", {"share.mode": "none", "locks.serial": "none", "readiness.parent": "none"}
    )
    assert (policy.share.mode, policy.locks.serial, policy.readiness.parent) == ("none",) * 3


def test_zero_is_a_cap():
    assert Policy.preset("balanced", {"caps.all": 0}).caps == {"all": 0}


def test_budgets():
    all_tokens, web, pool = Policy.parse({"budget": BUDGETS, "share.window": "5h"}).budget
    assert (all_tokens.tokens, all_tokens.usd, all_tokens.window) == (100_000, None, "24h")
    assert (web.usd, web.window, web.warn_at) == (12_500_000, "day", Fraction(1, 2))
    assert (pool.usd, pool.window, pool.on_exceeded) == (20_000_000, "5h", "stop")
    assert pool.warn_at == Fraction(4, 5)


@pytest.mark.parametrize(
    ("usd", "micros"),
    [(1, 1_000_000), (0.1, 100_000), ("0.000001", 1), (Decimal("19.99"), 19_990_000), (0, 0)],
)
def test_dollars_are_exact(usd, micros):
    policy = Policy.parse({"budget": [{"scope": "all", "usd": usd}]})
    assert policy.budget[0].usd == micros


@pytest.mark.parametrize(
    ("window", "micros", "calendar"),
    [("5h", 5 * HOUR, False), ("7d", 7 * DAY, False), ("day", None, True), ("total", None, False)],
)
def test_windows(window, micros, calendar):
    assert window_micros(window) == micros
    assert is_calendar(window) is calendar


def test_overrides_on_top_of_a_policy():
    policy = Policy.parse(RICH)
    raised = policy.with_overrides({'caps."kind:code"': 3, "share": {"window": "1h"}})
    assert raised.caps["kind:code"] == 3
    assert policy.caps["kind:code"] == 2
    assert raised.budget == policy.budget
    assert raised.preset_name == "fair-share"
    assert raised.with_overrides({"caps.kind:code": 2, "share.window": "24h"}) == policy


@given(
    caps=st.dictionaries(
        st.sampled_from(["all", "kind:code", "project:*", "pool:p", "label:gpu"]),
        st.integers(0, 99) | st.just("none"),
    ),
    ttl=st.integers(1, 10_000),
    jitter=st.decimals(0, 1, places=6),
    micros=st.integers(0, 10**12),
    name=st.sampled_from(sorted(Policy.presets())),
)
def test_every_document_parses_back(caps, ttl, jitter, micros, name):
    usd = str(Decimal(micros).scaleb(-6).quantize(Decimal("0.000001")))
    policy = Policy.preset(
        name,
        {
            "caps": caps,
            "lease.ttl": f"{ttl}s",
            "retry.jitter": jitter,
            "budget": [{"scope": "all", "usd": usd}],
        },
    )
    assert policy.budget[0].usd == micros
    assert policy.lease.ttl * 60 == ttl * MINUTE
    again = Policy.parse(json.loads(json.dumps(policy.document())))
    assert again == policy
    assert again.digest() == policy.digest()


#: Keys of no section, and a name of an open table.
AT_THE_TOP = {"order", "carry", "context", "caps.all"}


def test_every_field_is_a_key():
    policy = Policy.preset("balanced")
    held = {
        f"{section.name}.{key.name}"
        for section in dataclasses.fields(policy)
        if dataclasses.is_dataclass(value := getattr(policy, section.name))
        for key in dataclasses.fields(value)
    }
    held |= {f"attempt.may_add.{key.name}" for key in dataclasses.fields(MayAdd)}
    assert held - {"score.kind", "attempt.may_add"} == set(schema.ROWS) - AT_THE_TOP


def test_importing_is_light():
    code = "import sys, fairlane.policy; print({'tomlkit', 'asyncio'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
