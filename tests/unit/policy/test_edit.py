"""Changing a file keeps its comments, checks first, and replaces in one step."""

from __future__ import annotations

import pytest

from fairlane.model.errors import Invalid
from fairlane.policy import Policy
from fairlane.policy.edit import diff, explain, parse_assignment, set_key, sources, use_preset

TEXT = """\
# Ours.
preset = "fair-share"   # since spring

[caps]
all = 6  # one for each core
"project:*" = 3

# The night shift.
[[budget]]
scope = "all"
tokens = 5000000
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(TEXT)
    return path


def test_set_changes_one_line_and_keeps_comments(path):
    policy = set_key(path, "caps.all=8")
    assert path.read_text() == TEXT.replace("all = 6", "all = 8")
    assert policy == Policy.load(path)
    assert policy.caps["all"] == 8


@pytest.mark.parametrize(
    ("assignment", "key", "value"),
    [
        ("caps.all=none", "caps.all", "none"),
        ("caps.kind:code=2", "caps.kind:code", 2),
        ('caps."kind:code" = 2', "caps.kind:code", 2),
        ("caps.label:os=linux=2", "caps.label:os=linux", 2),
        ("score.kind.plan=7", "score.kind.plan", 7),
        ("overdue.after=24h", "overdue.after", "24h"),
        ("order=score,age", "order", ["score", "age"]),
        ('order=["age"]', "order", ["age"]),
        ("retry.jitter=0.25", "retry.jitter", 0.25),
        ("share.frozen=false", "share.frozen", False),
        ("usage.count=input output", "usage.count", ["input", "output"]),
    ],
)
def test_set_reaches_every_sort_of_key(path, assignment, key, value):
    set_key(path, assignment)
    text = path.read_text()
    assert Policy.load(path).shown()[key] == value
    assert all(comment in text for comment in ("# Ours.", "# since spring", "# one for each core"))
    assert set_key(path, assignment) == Policy.load(path)
    assert path.read_text() == text


def test_set_of_the_preset_and_of_budgets(path):
    set_key(path, "preset=serial-lanes")
    policy = set_key(path, 'budget=[{scope = "all", tokens = 7}]')
    assert policy.preset_name == "serial-lanes"
    assert [b.tokens for b in policy.budget] == [7]


def test_set_makes_a_file(tmp_path):
    path = tmp_path / "home" / "policy.toml"
    set_key(path, "caps.kind:code=8")
    assert Policy.load(path).caps == {"all": 4, "kind:code": 8}
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("caps.all=2.5", "caps.all: not a whole number: 2.5"),
        ("caps.al=2", "unknown key caps.al"),
        ("caps.team:x=2", "not a scope: 'team:x'"),
        ("nonsense", "not a setting"),
        ("caps.all=", "not a setting"),
        ("preset=fair", "unknown preset"),
        ("caps.all.x=2", 'caps."all.x"'),
        ("backpressure.soft=9", None),
    ],
)
def test_a_bad_value_changes_nothing(path, assignment, says):
    if says is None:
        set_key(path, assignment)
        with pytest.raises(Invalid, match="is below"):
            set_key(path, "backpressure.hard=8")
        return
    with pytest.raises(Invalid) as caught:
        set_key(path, assignment)
    assert says in caught.value.message
    assert path.read_text() == TEXT
    assert [each.name for each in path.parent.iterdir()] == ["policy.toml"]


def test_a_broken_file_is_not_touched(path):
    path.write_text("caps.all = \n")
    with pytest.raises(Invalid, match=r"policy\.toml:1: not TOML"):
        set_key(path, "caps.all=8")
    assert path.read_text() == "caps.all = \n"


def test_permissions_and_links_are_kept(path):
    path.chmod(0o600)
    link = path.with_name("link.toml")
    link.symlink_to(path)
    set_key(link, "caps.all=8")
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert Policy.load(path).caps["all"] == 8


def test_use_preset_keeps_what_was_there(path):
    backup = path.with_name("policy.toml.bak")
    assert use_preset(path, "depth-first") == backup
    assert backup.read_text() == TEXT
    assert Policy.load(path) == Policy.preset("depth-first")
    assert path.read_text().startswith("# ")
    second = use_preset(path, "balanced")
    assert second == path.with_name("policy.toml.bak1")
    assert backup.read_text() == TEXT


def test_use_preset_without_a_file(tmp_path):
    path = tmp_path / "policy.toml"
    assert use_preset(path, "fail-closed") is None
    assert Policy.load(path).preset_name == "fail-closed"
    assert [each.name for each in tmp_path.iterdir()] == ["policy.toml"]


def test_use_of_an_unknown_preset_changes_nothing(path):
    with pytest.raises(Invalid, match="unknown preset"):
        use_preset(path, "fast")
    assert path.read_text() == TEXT
    assert not path.with_name("policy.toml.bak").exists()


def test_explain_says_where_values_come_from(path):
    found = {each.key: each for each in explain(sources(path, {"lease.ttl": "1m"}))}
    assert found["caps.all"][1:] == (6, "policy.toml:5")
    assert found['caps."project:*"'][1:] == (3, "policy.toml:6")
    assert found["budget"].origin == "policy.toml:9"
    assert found["lease.ttl"][1:] == ("1m", "override")
    assert found["share.mode"][1:] == ("deficit", "preset fair-share")
    assert found["overdue.after"][1:] == ("none", "preset fair-share")
    assert found['score.kind."*"'][1:] == (50, "preset fair-share")


def test_explain_shows_what_a_file_removes(path):
    set_key(path, "caps.project:*=none")
    found = {each.key: each for each in explain(sources(path))}
    assert found['caps."project:*"'][1:] == ("none", "policy.toml:6")


def test_explain_without_a_file(tmp_path):
    found = explain(sources(tmp_path / "policy.toml"))
    assert {each.origin for each in found} == {"preset balanced"}


def test_diff():
    balanced = Policy.preset("balanced")
    other = balanced.with_overrides({"caps.all": "none", "caps.kind:x": 1})
    assert diff(balanced, balanced) == []
    assert diff(balanced, other) == [("caps.all", 4, "none"), ('caps."kind:x"', "none", 1)]


def test_assignments_are_read_as_toml_first():
    assert parse_assignment("caps.all=8") == ("caps.all", 8)
    assert parse_assignment("lease.ttl=5m") == ("lease.ttl", "5m")
    assert parse_assignment('lease.ttl="5m"') == ("lease.ttl", "5m")
