"""`fairlane policy` from outside."""

from __future__ import annotations

import pytest

from tests.acceptance.commands import fairlane

pytestmark = pytest.mark.slow  # each call is a process


def test_show_says_where_each_value_came_from(tmp_path):
    (tmp_path / "policy.toml").write_text('preset = "fair-share"\ncaps.all = 8\n')
    document = fairlane("policy", "show", "--json", "--home", tmp_path).document
    assert document["preset"] == "fair-share"
    rows = {row["key"]: (row["value"], row["origin"]) for row in document["keys"]}
    assert rows["caps.all"] == (8, "policy.toml:2")
    assert rows["share.mode"] == ("deficit", "preset fair-share")
    text = fairlane("policy", "show", FAIRLANE_HOME=str(tmp_path)).out
    assert "policy.toml:2" in text


def test_without_a_file_it_is_balanced(tmp_path):
    document = fairlane("policy", "show", "--json", "--home", tmp_path).document
    assert (document["preset"], document["file"]) == ("balanced", None)


def test_check_names_every_key_and_suggests(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text('caps.al = 4\nlease.tll = "5m"\ncaps."kind:code" = 2.5\n')
    said = fairlane("policy", "check", bad)
    assert (said.code, said.out) == (2, "")
    for words in ("bad.toml:1", "caps.al", "bad.toml:2", "lease.tll", "lease.ttl", "2.5"):
        assert words in said.err
    with_json = fairlane("policy", "check", bad, "--json")
    assert (with_json.code, with_json.err) == (2, "")
    assert with_json.document["error"]["code"] == "invalid_policy"


def test_check_of_a_good_file(tmp_path):
    good = tmp_path / "good.toml"
    good.write_text('preset = "depth-first"\n')
    assert fairlane("policy", "check", good).code == 0
    assert fairlane("policy", "check", good, "--json").document["ok"] is True


def test_check_looks_at_the_policy_of_the_home_folder(tmp_path):
    (tmp_path / "policy.toml").write_text("caps.al = 4\n")
    said = fairlane("policy", "check", "--home", tmp_path)
    assert said.code == 2
    assert f"{tmp_path / 'policy.toml'}:1: unknown key caps.al" in said.err


def test_presets_and_diff():
    names = [row["name"] for row in fairlane("policy", "presets", "--json").document["presets"]]
    assert sorted(names) == [
        "balanced", "batch-dispatch", "depth-first", "fail-closed", "fair-share", "serial-lanes",
    ]  # fmt: skip
    rows = fairlane("policy", "diff", "balanced", "fail-closed", "--json").document["differences"]
    assert {"key": "caps.all", "a": 4, "b": 1} in rows
    assert fairlane("policy", "diff", "balanced", "balanced").out == "no difference\n"


def test_use_and_set_keep_what_was_there(tmp_path):
    file = tmp_path / "policy.toml"
    assert fairlane("policy", "use", "serial-lanes", "--home", tmp_path).code == 0
    with file.open("a") as more:
        more.write("# mine\ncaps.all = 2 # two machines\n")
    said = fairlane("policy", "set", "caps.all=3", "--home", tmp_path)
    assert said.code == 0
    assert "caps.all" in said.out
    assert "# mine\ncaps.all = 3 # two machines\n" in file.read_text()
    before = file.read_text()
    refused = fairlane(
        "policy", "set", "caps.all=9", "retry.factor=0.5", "--home", tmp_path, "--json"
    )
    assert refused.code == 2
    assert "retry.factor" in refused.document["error"]["message"]
    assert file.read_text() == before
    used = fairlane("policy", "use", "balanced", "--home", tmp_path, "--json").document
    assert used["backup"].endswith("policy.toml.bak")


def test_a_key_that_is_almost_right_is_suggested_and_nothing_is_written(tmp_path):
    said = fairlane("policy", "set", "retry.max_attempt=2", "--home", tmp_path, "--json")
    assert said.code == 2
    assert said.document["error"]["message"] == "unknown key retry.max_attempt"
    assert said.document["error"]["hint"] == (
        "Did you mean 'retry.max_attempts'? Nothing was changed."
    )
    assert not (tmp_path / "policy.toml").exists()
