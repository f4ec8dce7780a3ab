"""Bad policies are refused with the file, the line, the key, and what is accepted."""

from __future__ import annotations

import pytest

from fairlane.model.errors import Invalid
from fairlane.policy import Policy
from fairlane.policy.load import problems

WHOLE = "a whole number"
BUDGET = '[[budget]]\nscope = "all"\n'

#: The text of a policy, and what its error must say (message and hint together).
REFUSED = {
    # keys that are not known
    "cap misspelled": ("caps.al = 4", ["policy.toml:1: unknown key caps.al", "mean caps.all?"]),
    "section misspelled": ("\n[cap]\nall = 4", ["policy.toml:2: unknown key cap", "mean 'caps'?"]),
    "key misspelled": (
        "[retry]\n\nmax_attempt = 3",
        [":3: unknown key retry.max_attempt", "mean 'retry.max_attempts'?"],
    ),
    "key without its section": (
        "max_attempts = 3",
        ["unknown key max_attempts", "'retry.max_attempts'"],
    ),
    "key of nothing": ("zzz = 1", [":1: unknown key zzz", "Known:", "caps"]),
    "key in a section": ("lease.zzz = 1", ["unknown key lease.zzz", "lease.ttl"]),
    "key below a value": ("lease.ttl.x = 1", ["lease.ttl: not a duration: {'x': 1}"]),
    "budget key": (BUDGET + "tokns = 5", [":3: unknown key budget[0].tokns", "mean 'tokens'?"]),
    "sort of cap": ('caps."team:x" = 1', ['caps."team:x": not a scope', "project:NAME"]),
    "sort of cap misspelled": (
        'caps."projct:x" = 1',
        ['caps."projct:x"', 'mean caps."project:x"?'],
    ),
    "cap without name": ('caps."kind:" = 1', ['caps."kind:"', "not a scope: 'kind:'"]),
    "cap as a table": ("caps.kind.code = 2", ["unknown key caps.kind", 'mean caps."kind:NAME"?']),
    "cap with a space": ('caps."kind:a b" = 2', ["not a scope: 'kind:a b'"]),
    "section is a value": ("caps = 3", ["caps: not a table: 3", "caps.all"]),
    "kinds are a value": ("score.kind = 3", ["score.kind: not a table: 3"]),
    "set twice": ('"caps.all" = 3\ncaps.all = 4', ["caps.all is set twice"]),
    # counts
    "fraction": (
        "caps.all = 2.5",
        [":1: caps.all: not a whole number: 2.5", "0 or more", '"none"'],
    ),
    "text for a count": ('caps.all = "abc"', ["caps.all: not a whole number: 'abc'"]),
    "negative": ("caps.all = -1", ["caps.all: -1 is out of range", WHOLE]),
    "true for a count": ("caps.all = true", ["caps.all: not a whole number: True"]),
    "whole float": ("capacity.batch = 1.0", ["capacity.batch: not a whole number: 1.0"]),
    "too large": ("caps.all = 1000000000000000000", ["caps.all", WHOLE, "to 1000000000000000"]),
    "named cap": ('caps."kind:code" = -2', ['caps."kind:code": -2 is out of range', WHOLE]),
    "no attempt": ("retry.max_attempts = 0", ["retry.max_attempts: 0 is out of range", "from 1"]),
    "no probe": ("cooldown.probe = 0", ["cooldown.probe: 0 is out of range", "1 or more"]),
    "no launch": ("breaker.launch_failures = 0", ["breaker.launch_failures: 0 is", "1 or more"]),
    "exponent": (
        "cooldown.exponent_max = 99",
        ["cooldown.exponent_max: 99 is out of range", "to 32"],
    ),
    "points": ("score.kind.plan = 1.5", ["score.kind.plan: not a whole number: 1.5"]),
    "negative age": ("score.age_per_minute = -1", ["score.age_per_minute: -1 is out", WHOLE]),
    "soft": (
        'backpressure.soft = "aut"',
        ["backpressure.soft: not a whole number: 'aut'", '"auto"', '"none"'],
    ),
    # ratios
    "factor": ("retry.factor = 0.5", ["retry.factor: 0.5 is out of range", "from 1 to"]),
    "jitter above": ("retry.jitter = 1.01", ["retry.jitter: 1.01 is out of range", "from 0 to 1"]),
    "jitter below": ("retry.jitter = -0.1", ["retry.jitter: -0.1 is out of range", "from 0 to 1"]),
    "jitter not a number": (
        "retry.jitter = nan",
        ["retry.jitter: not a number: NaN", "from 0 to 1"],
    ),
    "endless factor": ("retry.factor = inf", ["retry.factor", "from 1 to"]),
    "ratio as text": ('retry.jitter = "0.1"', ["retry.jitter: not a number: '0.1'"]),
    "warn_at": (
        BUDGET + "tokens = 5\nwarn_at = 1.5",
        [":4: budget[0].warn_at: 1.5 is out of range", "from 0 to 1"],
    ),
    # durations
    "number for a duration": ("lease.ttl = 300", ["lease.ttl: not a duration: 300", "30s"]),
    "duration without unit": ('retry.base = "30"', ["retry.base: not a duration: '30'", "30s"]),
    "negative duration": ('retry.base = "-30s"', ["retry.base: not a duration: '-30s'"]),
    "no ttl": ('lease.ttl = "0s"', ["lease.ttl: not longer than 0s: '0s'"]),
    "no interval": ('cycle.interval = "0s"', ["cycle.interval", "longer than 0s"]),
    "too long": ('history.keep = "99999999d"', ["history.keep", "at most 36500d"]),
    "none for what must be": ('lease.ttl = "none"', ["lease.ttl: not a duration: 'none'"]),
    # words
    "mode": ('share.mode = "deficits"', ["share.mode: 'deficits' is none of", "mean 'deficit'?"]),
    "serial": ('locks.serial = "group"', ["locks.serial: 'group' is none of group+kind, none"]),
    "flag": ('share.frozen = "yes"', ["share.frozen", "true or false"]),
    "order unknown": ('order = ["scor"]', ["order: 'scor' is none of", "mean 'score'?"]),
    "order twice": ('order = ["age", "age"]', ["order: 'age' appears twice"]),
    "order empty": ("order = []", ["order: an empty list", "one or more of guarantee"]),
    "order of numbers": ("order = [1]", ["order: 1 is none of guarantee"]),
    "counters": ('usage.count = ["inputs"]', ["usage.count", "mean 'input'?"]),
    "preset unknown": ('preset = "depth_first"', [":1: unknown preset", "mean 'depth-first'?"]),
    "preset of another type": ("preset = 3", ["unknown preset 3", "balanced"]),
    # budgets
    "budget of nothing": (BUDGET, [":1: budget[0] has neither tokens nor usd"]),
    "budget of both": (BUDGET + "tokens = 1\nusd = 1", ["budget[0] has both tokens and usd"]),
    "second budget": (BUDGET + "tokens = 1\n" + BUDGET, [":4: budget[1] has neither"]),
    "budget without scope": ("[[budget]]\ntokens = 1", ["budget[0] has no scope", '"all"']),
    "budget of each": (
        BUDGET.replace("all", "project:*") + "tokens = 1",
        ["budget[0].scope: not a scope: 'project:*'", "project:NAME"],
    ),
    "budget scope": (
        BUDGET.replace("all", "kind:x") + "tokens = 1",
        [":2: budget[0].scope", "pool:NAME"],
    ),
    "budget window": (BUDGET + 'tokens = 1\nwindow = "year"', ["budget[0].window", "month, total"]),
    "budget no window": (
        BUDGET + 'tokens = 1\nwindow = "0s"',
        ["budget[0].window", "longer than 0s"],
    ),
    "budget tokens": (BUDGET + "tokens = -1", ["budget[0].tokens: -1 is out of range", WHOLE]),
    "too fine": (BUDGET + "usd = 0.0000001", ["budget[0].usd", "exact to a millionth"]),
    "negative usd": (
        BUDGET + "usd = -1",
        ["budget[0].usd: not an amount of dollars: -1", "from 0"],
    ),
    "usd with a sign": (
        BUDGET + 'usd = "$5"',
        ["budget[0].usd: not an amount of dollars: '$5'", "12.50"],
    ),
    "exceeded": (
        BUDGET + 'tokens = 1\non_exceeded = "kill"',
        ["on_exceeded: 'kill' is none of finish, stop"],
    ),
    "one budget": ("budget.scope = 1", ["budget: not a list of tables", "[[budget]]"]),
    # the whole
    "hard below soft": (
        "backpressure.soft = 4\nbackpressure.hard = 2",
        [":2: backpressure.hard = 2", "soft = 4"],
    ),
    "hard below auto": (
        'caps.all = 3\nbackpressure.soft = "auto"\nbackpressure.hard = 11',
        [":3:", "hard = 11", "soft = 12"],
    ),
    # the file
    "not TOML": ("caps.all = 4\nx y\n", ["policy.toml:2: not TOML"]),
    "cut off": ('order = ["age"', ["policy.toml:1: not TOML"]),
    "text without quotes": ("lease.ttl = 5m", [":1: not TOML", 'lease.ttl = "5m"']),
}


@pytest.mark.parametrize(("text", "says"), REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path, text, says):
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(Invalid) as caught:
        Policy.load(path)
    error = caught.value
    said = f"{error.message} | {error.hint}"
    assert error.exit_code == 2
    assert error.hint
    assert str(path) in error.message
    for fragment in says:
        assert fragment in said
    assert said.startswith(problems(path)[0].message.partition("(and")[0])


def test_enough_cases():
    assert len(REFUSED) >= 40


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x00", b"caps.all = 4\n# " + b"x" * 2_000_000])
def test_not_a_text(tmp_path, content):
    path = tmp_path / "policy.toml"
    path.write_bytes(content)
    with pytest.raises(Invalid, match=r"policy\.toml"):
        Policy.load(path)


def test_a_folder_is_no_policy(tmp_path):
    with pytest.raises(Invalid, match="cannot be read"):
        Policy.load(tmp_path)


def test_every_problem_is_listed(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('caps.all = -1\nlease.tll = "5m"\nretry.jitter = 2\n')
    assert [p.message.split(":")[1] for p in problems(path)] == ["1", "2", "3"]
    with pytest.raises(Invalid, match=r"\(and 2 more\)"):
        Policy.load(path)


def test_check_of_a_missing_file(tmp_path):
    assert "no such file" in problems(tmp_path / "policy.toml")[0].message


def test_a_good_file_has_no_problem(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('preset = "fair-share"\n')
    assert problems(path) == []


@pytest.mark.parametrize(
    "overrides", [{"caps.al": 1}, {"preset": "balanced"}, {"caps": {"all": -1}}]
)
def test_bad_overrides(overrides):
    with pytest.raises(Invalid, match="override"):
        Policy.preset("balanced", overrides)
    with pytest.raises(Invalid, match="override"):
        Policy.preset("balanced").with_overrides(overrides)


def test_unknown_preset():
    with pytest.raises(Invalid, match="unknown preset") as caught:
        Policy.preset("fair_share")
    assert "'fair-share'" in caught.value.hint


def test_parse_names_its_origin():
    with pytest.raises(Invalid, match=r"^scenario.toml: caps.all: not a whole number: 2.5"):
        Policy.parse({"caps": {"all": 2.5}}, origin="scenario.toml")
