"""Agency's `config.yaml`: every key of its rules, and what is refused."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fairlane.model.errors import Invalid
from fairlane.policy.policy import Policy
from fairlane.service.conversion import operation
from fairlane.settings import Settings
from tests.unit.contexts import TestContext

EXAMPLE = Path(__file__).parents[2] / "examples" / "coming-from" / "agency" / "project"


def policy_of(name, file):
    return Policy.parse(tomllib.loads(operation.show(name, str(file))["policy"]))


def made(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


RETRY = {"base": "45s", "factor": 3, "cap": "10m", "jitter": 0.2, "max_attempts": 4}


@pytest.mark.parametrize(
    "text",
    [
        "retryPolicy: {base: 45, factor: 3, jitter: 0.2, cap: 10m, maxRetries: 3}",
        "retry: {base: 45, multiplier: 3, jitter: 0.2, cap: 600, maxRetries: 3}",
        "retry: {baseSeconds: 45, factor: 3, jitter: 20%, capSeconds: 600, max_retries: 3}",
        "retry: {baseMs: 45000, multiplier: 3, jitter: ±20%, maxDelay: 10m, maxAttempts: 4}",
        "agents: {retry: {base_delay: 45 s, factor: 3, jitter: 0.2, cap: 10 min, maxAttempts: 4}}",
    ],
)
def test_agency_retries_in_either_case_and_any_unit(tmp_path, text):
    file = made(tmp_path, "config.yaml", text)
    policy = policy_of("agency", file)
    assert policy == Policy.preset(
        "serial-lanes", {f"retry.{key}": value for key, value in RETRY.items()}
    )
    assert operation.show("agency", str(file))["unknown"] == []


def test_agency_without_a_configuration_has_its_defaults(tmp_path):
    (tmp_path / "project" / "phase-1-core" / "backlog").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "project"):
        assert policy_of("agency", folder) == Policy.preset("serial-lanes")
        note = operation.show("agency", str(folder))["notes"][0]
        assert note == "There is no config.yaml, so Agency's defaults hold; they are the preset's."
    with pytest.raises(Invalid, match=r"there is no config\.yaml or "):
        operation.show("agency", str(tmp_path / "project" / "phase-1-core"))


def test_agency_the_documented_policy_is_the_preset(tmp_path):
    text = (
        "agents: {maxConcurrent: 1, perFlow: {implement: 1, review: 1, research: 1}}\n"
        "queue: {softLimit: 8, hardLimit: 16}\n"
        "retry: {base: 30s, multiplier: 2, jitter: 0.1, cap: 5m, maxRetries: 5}\n"
        "staleLockTimeout: 10m\n"
    )
    policy, preset = policy_of("agency", made(tmp_path, "config.yaml", text)), "serial-lanes"
    same = Policy.preset(preset)
    assert (policy.retry, policy.recovery) == (same.retry, same.recovery)
    assert policy.backpressure_limits() == same.backpressure_limits() == (8, 16)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("staleLockTimeout: 90", "1m30s"),
        ("staleLockTimeout: 20m", "20m"),
        ("staleLockTimeoutMinutes: 20", "20m"),
        ("agents: {stale_lock_timeout: 1h 30m}", "1h30m"),
    ],
)
def test_agency_stale_locks(tmp_path, line, after):
    policy = policy_of("agency", made(tmp_path, "config.yaml", line))
    assert policy == Policy.preset("serial-lanes", {"recovery.stale_after": after})


def test_agency_names_what_has_no_counterpart(tmp_path):
    text = (
        "name: x\nretry: {base: 1s, max: 3, hue: red, when: [x]}\n"
        "agents: {model: gpt, maxRuns: 1}\nui: {retry: {base: 3}}\n"
    )
    document = operation.show("agency", str(made(tmp_path, "config.yaml", text)))
    unknown = ["name", "retry.max", "retry.hue", "retry.when", "agents.model", "agents.maxRuns"]
    assert document["unknown"] == [*unknown, "ui.retry.base"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("retry: {base: soon}", "retry.base: not a duration: 'soon'"),
        ("retry: {jitter: lots}", "retry.jitter: not a share: 'lots'"),
        ("retry: {jitter: 10}", "retry.jitter: 10 is out of range"),
        ("retry: {cap: 5 months}", "retry.cap: not a duration: '5 months'"),
        ("retry: {maxRetries: 3, maxAttempts: 4}", "maxAttempts and retry.maxRetries say the same"),
        ("staleLockTimeout: [1]", "staleLockTimeout: not a number: [1]"),
    ],
)
def test_agency_bad_rules_change_nothing(tmp_path, text, message):
    with pytest.raises(Invalid) as refused:
        operation.show("agency", str(made(tmp_path, "config.yaml", text)))
    assert message in refused.value.message


@pytest.mark.parametrize(("slots", "left"), [(2, None), (3, None), (5, 5)])
def test_slots_of_the_settings_do_not_keep_a_raised_cap_from_working(tmp_path, slots, left):
    (tmp_path / "fairlane.toml").write_text(f"# ours\n[worker]\nslots = {slots}\n")
    home = TestContext(tmp_path)
    operation.write(home.context, "agency", str(EXAMPLE))
    text = (tmp_path / "fairlane.toml").read_text()
    assert "# ours" in text
    assert Settings.parse(tomllib.loads(text)).worker.slots == left


@pytest.mark.parametrize(
    ("name", "file", "text", "key"),
    [
        ("agency", "config.yaml", "agents: {maxConcurrent: 0}", "agents.maxConcurrent"),
        ("loopr", "loopr.yml", "concurrency: {max_loops: 0}", "max_loops"),
    ],
)
def test_a_limit_of_none_is_noted(tmp_path, name, file, text, key):
    answer = operation.show(name, str(made(tmp_path, file, text)))
    assert answer["notes"][0].startswith(f"{key} is 0, so nothing starts, as there.")


def test_work_without_its_rules_leaves_the_rules_and_says_so(tmp_path):
    file = made(tmp_path, "loops.jsonl", '{"id": "a", "prompt": "x"}')
    answer = operation.show("loopr", str(file))
    assert answer["policy"] == ""
    assert "`fairlane policy use depth-first` takes loopr's defaults." in answer["notes"][-1]
