"""`fairlane plan` from outside: JSON, text, exit codes."""

from __future__ import annotations

import json
import re

import pytest

from fairlane.service.scenario import apply_change, to_mapping
from tests.acceptance.commands import EXAMPLES, fairlane

pytestmark = pytest.mark.slow  # each call is a process

BALANCED = EXAMPLES / "balanced.toml"
PLAN_KEYS = [
    "schema", "now", "capacity", "picks", "reclaims", "holds", "reason", "wake_at", "digests",
]  # fmt: skip
PICK_KEYS = {
    "task", "project", "kind", "worker", "score", "score_parts", "estimate_tokens",
}  # fmt: skip
HOLD_KEYS = ["gate", "code", "reason", "until", "holders", "count", "tasks"]
WHY_KEYS = [
    "schema", "task", "status", "verdict", "holds", "position", "ahead", "score", "share",
    "would_start_if", "starts",
]  # fmt: skip


def test_the_document_has_the_agreed_shape():
    said = fairlane("--json", "plan", "--scenario", BALANCED)
    assert (said.code, said.err) == (0, "")
    document = said.document
    assert list(document) == PLAN_KEYS
    assert document["schema"] == "fairlane/1"
    assert document["now"] == "2026-01-30T12:00:00Z"
    assert document["capacity"] == {"cap": 6, "in_flight": 2, "free": 4}
    assert [pick["task"] for pick in document["picks"]] == ["login-form", "dark-mode", "pagination"]
    for pick in document["picks"]:
        assert set(pick) >= PICK_KEYS
        assert list(pick["score_parts"]) == ["kind", "age", "depth", "retries"]
        assert sum(pick["score_parts"].values()) == pick["score"]
    assert all(list(hold) == HOLD_KEYS for hold in document["holds"])
    assert document["reclaims"] == []
    assert list(document["digests"]) == ["snapshot", "policy", "plan"]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in document["digests"].values())


@pytest.mark.parametrize("name", sorted(file.stem for file in EXAMPLES.glob("*.toml")))
def test_every_example_plans_as_it_says_and_both_planners_give_the_same_bytes(name):
    file = EXAMPLES / f"{name}.toml"
    assert fairlane("plan", "--scenario", file, "--check").code == 0
    lanes = fairlane("plan", "--json", "--scenario", file)
    reference = fairlane("plan", "--json", "--scenario", file, "--planner", "reference")
    assert lanes.code == reference.code == 0
    assert lanes.out == reference.out


def test_the_worked_example_has_its_numbers():
    picks = fairlane("plan", "--json", "--scenario", EXAMPLES / "depth-first.toml").document[
        "picks"
    ]
    assert [pick["score"] for pick in picks] == [135, 130, 111]


def test_options_stand_before_or_after_the_verb():
    before = fairlane("--json", "--now", "2026-01-30T12:04:00Z", "plan", "--scenario", BALANCED)
    after = fairlane("plan", "--scenario", BALANCED, "--now", "2026-01-30T12:04:00Z", "--json")
    assert before.out == after.out
    assert before.document["now"] == "2026-01-30T12:04:00Z"
    assert "cooldown" not in {hold["code"] for hold in before.document["holds"]}


def test_a_scenario_comes_from_standard_input_as_toml_or_json():
    file = fairlane("plan", "--json", "--scenario", BALANCED)
    toml = fairlane("plan", "--json", "--scenario", "-", text=BALANCED.read_text())
    tables = json.dumps(to_mapping(BALANCED.read_text()), default=str)
    as_json = fairlane("plan", "--json", "--scenario", "-", text=tables)
    assert file.out == toml.out == as_json.out


def test_check_names_the_differences_and_exits_1(tmp_path):
    text = BALANCED.read_text().replace('reason = "held"', 'reason = "ready"')
    text = text.replace('tutorial = "budget"', 'tutorial = "cap"').replace(
        "dark-mode = 101", "dark-mode = 1"
    )
    (tmp_path / "wrong.toml").write_text(text)
    said = fairlane("plan", "--scenario", tmp_path / "wrong.toml", "--check")
    assert said.code == 1
    assert said.out.splitlines() == [
        "score of dark-mode: expected 1, planned 101",
        "hold of tutorial: expected cap, planned budget",
        "reason: expected ready, planned held",
    ]
    with_json = fairlane("plan", "--scenario", tmp_path / "wrong.toml", "--check", "--json")
    assert (with_json.code, len(with_json.document["differences"])) == (1, 3)
    assert fairlane("plan", "--scenario", tmp_path / "wrong.toml").code == 0


def test_what_is_expected_is_read_only_where_it_is_compared(tmp_path):
    text = 'now = 2026-01-30T12:00:00Z\ntask = [{ id = "a" }]\n[expect]\npick = ["a"]\n'
    (tmp_path / "odd.toml").write_text(text)
    assert fairlane("plan", "--scenario", tmp_path / "odd.toml").code == 0
    said = fairlane("plan", "--scenario", tmp_path / "odd.toml", "--check")
    assert said.code == 2
    assert "expect: unknown key 'pick'" in said.err


def test_people_read_the_order_the_holds_and_what_comes_next():
    text = fairlane("plan", "--scenario", BALANCED).out
    assert "2 of 6 in flight, room for 4" in text
    assert "code 100 + age 40 + depth 20" in text
    assert "cap kind:review is full: 1 of 1 in flight (by review-1)" in text
    assert "review-2, review-3" in text
    assert "Misconfigured" in text
    assert "in 45s (2026-01-30T12:00:45Z)" in text
    assert "\x1b" not in text


def test_control_characters_of_users_are_made_visible(tmp_path):
    scenario = tmp_path / "evil.toml"
    scenario.write_text(
        'now = 2026-01-30T12:00:00Z\ntask = [{ id = "a", source = "\\u001b[2J\\u202egone" }]\n'
    )
    for said in (
        fairlane("why", "--scenario", scenario, "a"),
        fairlane("why", "--scenario", scenario, "a", "--json"),
        fairlane("plan", "--scenario", scenario, "\x1b[2J"),
    ):
        assert "\x1b" not in said.out + said.err
        assert "\u202e" not in said.out + said.err
    assert "\\x1b[2J\\u202egone" in fairlane("why", "--scenario", scenario, "a").out


def test_why_has_the_agreed_shape_and_its_proposals_start_the_task(tmp_path):
    said = fairlane("why", "--json", "--scenario", BALANCED, "review-2")
    assert said.code == 0
    document = said.document
    assert list(document) == WHY_KEYS
    assert document["verdict"].startswith("held: cap kind:review is full")
    assert document["position"] == 4
    assert document["score"] == {"total": 59, "kind": 50, "age": 9, "depth": 0, "retries": 0}
    applies = [change["apply"] for change in document["would_start_if"]]
    assert applies == [{"end": "review-1"}, {"policy": {'caps."kind:review"': 2}}]
    for apply in applies:
        after = json.dumps(apply_change(BALANCED.read_text(), apply), default=str)
        planned = fairlane("plan", "--json", "--scenario", "-", text=after).document
        assert "review-2" in [pick["task"] for pick in planned["picks"]]


def test_why_of_an_unknown_task_is_not_found():
    said = fairlane("why", "--json", "--scenario", BALANCED, "review-22")
    assert (said.code, said.document["error"]["code"]) == (1, "not_found")
    assert "review-2" in said.document["error"]["hint"]
