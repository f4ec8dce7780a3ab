"""What the files of five other schedulers become here."""

from __future__ import annotations

import json
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from fairlane.model.errors import Invalid
from fairlane.model.project import Pause, Project
from fairlane.policy.policy import Policy
from fairlane.service import conversion
from fairlane.service.conversion import base, operation
from fairlane.service.conversion.formats.agent_queue import _whole_weights
from tests.unit.contexts import TestContext

EXAMPLES = Path(__file__).parents[3] / "examples" / "coming-from"

#: Nine lines of YAML that stand for a thousand million keys.
BOMB = "a0: &a0 {x: 1, y: 2}\n" + "\n".join(
    f"a{at}: &a{at} {{{', '.join(f'k{each}: *a{at - 1}' for each in range(10))}}}"
    for at in range(1, 9)
)


def policy_of(name, file):
    document = operation.show(name, str(file))
    return Policy.parse(tomllib.loads(document["policy"]))


def made(tmp_path, name, text):
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return file


@pytest.fixture
def database(tmp_path):
    """agent-queue's example as a database."""
    file = tmp_path / "agent-queue.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript((EXAMPLES / "agent-queue" / "agent-queue.sql").read_text())
    return file


def test_formats_are_the_files_of_the_folder():
    assert conversion.names() == ("agency", "agent-queue", "cool-workflow", "gastown", "loopr")


def test_a_format_that_is_misspelled_gets_the_nearest(tmp_path):
    with pytest.raises(Invalid, match="there is no format 'gas-town'") as refused:
        conversion.convert("gas-town", tmp_path)
    assert refused.value.hint == "Did you mean 'gastown'?"


def test_loopr_keeps_its_numbers():
    policy = policy_of("loopr", EXAMPLES / "loopr" / "loopr.yml")
    assert policy.preset_name == "depth-first"
    assert dict(policy.caps) == {
        "all": 50,
        "kind:plan": 2,
        "kind:spec": 5,
        "kind:phase": 20,
        "kind:code": 50,
        "pool:anthropic": 10,
    }
    # The file has the preset's numbers, so nothing else differs from the preset.
    assert policy == Policy.preset("depth-first", {"caps.pool:anthropic": 10})


def test_loopr_other_numbers_and_names(tmp_path):
    file = made(
        tmp_path,
        "loopr.yml",
        "scheduler: {poll_interval_secs: 5, colour: red, priority: {code: 7, retry_penalty_max: 9}}"
        "\n"
        "concurrency: {max_concurrent_loops: 3, per_type: {review: 1}}\n",
    )
    policy, document = policy_of("loopr", file), operation.show("loopr", str(file))
    assert (policy.caps["all"], policy.caps["kind:review"]) == (3, 1)
    assert (policy.score.kind["code"], policy.score.retry_penalty_max) == (7, 9)
    assert policy.cycle.interval == 5_000_000
    assert document["unknown"] == ["scheduler.colour"]
    assert "slots" not in document["settings"]  # as many as the cap lets run, also when raised


def test_loops_that_need_a_look_come_in_parked(tmp_path):
    rows = [
        {"id": "a", "status": "running", "iteration": 2, "prompt": "Go on."},
        {"id": "b", "parent_id": "a", "mood": "fine", "prompt": "Then this."},
        {"id": "c", "status": "invalidated"},
    ]
    file = made(tmp_path, "loops.jsonl", "\n".join(map(json.dumps, rows)))
    home = TestContext(tmp_path / "home")
    home.context.home.mkdir()
    document = operation.write(home.context, "loopr", str(file))
    assert (document["policy"], document["settings"], document["written"]) == ("", "", [])
    assert document["unknown"] == ["loops.jsonl: mood (kept in meta)"]
    assert home.status_of("a", "b", "c") == ["parked", "queued", "canceled"]
    with home.context.store.read() as reading:
        found = reading.tasks("abc")
    assert (found["a"].reason, found["a"].failures) == ("running in loopr", 1)
    assert found["b"].meta == {"mood": "fine"}
    assert found["c"].ended_at is not None


def test_agency_caps_are_flows_and_serial_is_the_default():
    policy = policy_of("agency", EXAMPLES / "agency" / "project" / "config.yaml")
    assert policy.preset_name == "serial-lanes"
    assert dict(policy.caps) == {
        "all": 3,
        "kind:implement": 2,
        "kind:review": 1,
        "kind:research": 1,
        "kind:*": 1,
    }
    assert policy.backpressure_limits() == (12, 24)


def test_agency_own_limits(tmp_path):
    file = made(tmp_path, "config.yaml", "queue: {softLimit: 2, hardLimit: 3}\nname: x\n")
    assert policy_of("agency", file).backpressure_limits() == (2, 3)
    assert operation.show("agency", str(file))["unknown"] == ["name"]


@pytest.mark.parametrize("most", [-1, 0, None])
def test_gas_town_without_a_positive_number_is_direct(tmp_path, most):
    file = made(tmp_path, "config.json", {"scheduler": {"max_polecats": most}})
    policy = policy_of("gastown", file)
    assert (policy.capacity.mode, policy.caps.get("all")) == ("direct", None)


def test_gas_town_with_a_number_is_deferred(tmp_path):
    settings = {"scheduler": {"max_polecats": 4, "batch_size": 2, "spawn_delay": "1m3s"}}
    made(tmp_path, "settings/config.json", settings | {"cli_theme": "dark"})
    state = {"paused": True, "paused_by": "mayor", "paused_at": "2026-01-30T11:00:00Z"}
    made(tmp_path, ".runtime/scheduler-state.json", state)
    rigs = {"web": {"beads": {"prefix": "wb"}}, "town": {"beads": {"prefix": "hq-"}}, "bare": {}}
    made(tmp_path, "mayor/rigs.json", {"rigs": rigs})
    home = TestContext(tmp_path)
    document = operation.write(home.context, "gastown", str(tmp_path / "settings" / "config.json"))
    policy = Policy.load(home.context.policy_file)
    assert (policy.capacity.mode, policy.caps["all"]) == ("deferred", 4)
    assert (policy.capacity.batch, policy.capacity.spawn_delay) == (2, 63_000_000)
    assert document["unknown"] == ["cli_theme"]
    with home.context.store.read() as reading:
        assert reading.table(Project)["web"].prefix == "wb-"
        assert "town" not in reading.table(Project)
        pauses = [(each.scope, each.by, each.reason) for each in reading.table(Pause).values()]
    assert pauses == [("all", "mayor", "paused in Gas Town")]
    assert operation.write(home.context, "gastown", str(tmp_path))["changed"] is False


def test_cool_workflow_keeps_its_numbers(tmp_path):
    numbers = {"maxConcurrent": 2, "maxAttempts": 5, "leaseTtlMs": 1500, "backoffFactor": 1.5}
    numbers |= {"backoffBaseMs": 250, "backoffCapMs": 9000, "schemaVersion": 1, "mood": 1}
    file = made(tmp_path, "scheduling-policy.json", numbers)
    policy = policy_of("cool-workflow", file)
    assert (policy.preset_name, policy.caps["all"]) == ("fail-closed", 2)
    assert (policy.lease.ttl, policy.retry.base, policy.retry.cap) == (
        1_500_000,
        250_000,
        9_000_000,
    )
    assert (policy.retry.max_attempts, float(policy.retry.factor)) == (5, 1.5)
    assert operation.show("cool-workflow", str(file))["unknown"] == ["mood"]


def test_cool_workflow_of_another_version_is_refused(tmp_path):
    file = made(tmp_path, "scheduling-policy.json", {"schemaVersion": 2, "maxConcurrent": 9})
    with pytest.raises(Invalid, match="schemaVersion 2 is not known"):
        operation.show("cool-workflow", str(file))


def test_cool_workflow_with_a_ceiling_of_nothing_says_what_to_do(tmp_path):
    file = made(tmp_path, "scheduling-policy.json", {"maxConcurrent": 0})
    assert policy_of("cool-workflow", file).caps["all"] == 0
    (note, *_) = operation.show("cool-workflow", str(file))["notes"]
    assert "`fairlane policy set caps.all=1`" in note


def test_cool_workflow_without_a_policy_has_its_defaults(tmp_path):
    made(tmp_path, "registry/queue.json", {"schemaVersion": 1, "entries": []})
    assert policy_of("cool-workflow", tmp_path) == Policy.preset("fail-closed")


def test_cool_workflow_with_its_defaults_is_the_preset():
    assert policy_of("cool-workflow", EXAMPLES / "cool-workflow") == Policy.preset("fail-closed")


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ([3.0, 1.0], [3, 1]),
        ([6.0, 2.0], [6, 2]),
        ([1.5, 1.0], [3, 2]),
        ([0.5, 0.25, 0.0], [2, 1, 0]),
        ([0.0], [0]),
        ([], []),
    ],
)
def test_weights_keep_their_ratio(given, whole):
    assert _whole_weights(given) == whole


def test_agent_queue_projects_and_rules(database):
    made(database.parent, "config.yaml", "scheduling: {rolling_window_hours: 12}\n")
    document = operation.show("agent-queue", str(database.parent))
    assert document["projects"] == [
        {"name": "a", "weight": 3, "max_in_flight": 2, "status": "active"},
        {"name": "b", "weight": 1, "max_in_flight": 2, "status": "active"}
        | {"budgets": [{"tokens": 50000, "window": "12h"}]},
    ]
    policy = policy_of("agent-queue", database.parent)
    assert (policy.preset_name, policy.share.window) == ("fair-share", 12 * 3600 * 1_000_000)
    assert policy.readiness.parent == "none"


@pytest.mark.parametrize(("given", "most"), [("true", 1), ("false", 0), ("2", 2)])
def test_agent_queue_guarantee(tmp_path, given, most):
    text = f"scheduling: {{min_task_guarantee: {given}}}\nglobal_token_budget_daily: 9\n"
    policy = policy_of("agent-queue", made(tmp_path, "config.yaml", text))
    assert policy.share.guarantee == most
    assert [(each.scope, each.tokens, each.window) for each in policy.budget] == [("all", 9, "24h")]


def test_agent_queue_brings_usage_once_and_leaves_the_database_alone(database, tmp_path):
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    home = TestContext(tmp_path / "home")
    home.context.home.mkdir()
    for added in (6, 0):
        assert operation.write(home.context, "agent-queue", str(database))["added"] == added
        with home.context.store.read() as reading:
            sums = reading.usage_sums("project:", 0)
            assert {name: (each.tokens[1], each.completions) for name, each in sums.items()} == {
                "project:a": (1000, 1),
                "project:b": (500, 1),
            }
    after = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    assert after == before


def test_agent_queue_reads_what_is_still_in_the_log(database, tmp_path):
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("UPDATE projects SET credit_weight = 5 WHERE id = 'a'")
        connection.commit()
        document = operation.show("agent-queue", str(database))
    assert document["projects"][0]["weight"] == 5


def test_agent_queue_of_another_age_or_with_gaps_is_read_with_the_defaults(database, tmp_path):
    with closing(sqlite3.connect(database)) as connection:
        for column in ("created_at", "updated_at", "max_retries", "parent_task_id", "retry_count"):
            connection.execute(f"ALTER TABLE tasks DROP COLUMN {column}")
        connection.execute("ALTER TABLE projects DROP COLUMN credit_weight")
        connection.execute("UPDATE token_ledger SET project_id = 'gone' WHERE tokens_used = 500")
        connection.commit()
    home = TestContext(tmp_path)
    document = operation.write(home.context, "agent-queue", str(database))
    assert document["added"] == 6
    assert document["projects"][0]["weight"] == 1
    lost = "500 tokens of the ledger belong to no project that is there: left out."
    assert lost in document["notes"]
    assert home.status_of("a-1", "a-2") == ["done", "queued"]


def test_agent_queue_archived_projects_keep_their_tasks(database, tmp_path):
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE projects SET status = 'ARCHIVED' WHERE id = 'b'")
        connection.commit()
    home = TestContext(tmp_path)
    operation.write(home.context, "agent-queue", str(database))
    with home.context.store.read() as reading:
        assert reading.table(Project)["b"].status == "archived"
    assert home.status_of("b-1", "b-2", "b-3") == ["done", "queued", "parked"]
    assert [each["task"] for each in home.lease()] == ["a-2"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "UPDATE projects SET credit_weight = -1 WHERE id = 'a'",
            "a: credit_weight: -1.0 is out of",
        ),
        ("ALTER TABLE tasks DROP COLUMN title", "a table without column 'title'"),
        ("DROP TABLE token_ledger", "not agent-queue's database: no such table: token_ledger"),
    ],
)
def test_bad_databases_are_named_and_change_nothing(database, tmp_path, statement, message):
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(statement)
        connection.commit()
    home = TestContext(tmp_path)
    with pytest.raises(Invalid) as refused:
        operation.write(home.context, "agent-queue", str(database))
    assert message in refused.value.message
    with home.context.store.read() as reading:
        assert (reading.tallies(), set(reading.table(Project))) == ([], {"default"})


@pytest.mark.parametrize(
    ("name", "file", "text", "message"),
    [
        ("loopr", "loopr.yml", "a: [", "loopr.yml: not YAML"),
        ("loopr", "loopr.yml", "a: 1\na: 2\n", "loopr.yml: not YAML: 'a' appears twice"),
        ("loopr", "loopr.yml", "- a", "loopr.yml: not a table of keys"),
        (
            "loopr",
            "loopr.yml",
            "concurrency: {max_loops: many}",
            "max_loops: not a whole number: 'many'",
        ),
        ("loopr", "loopr.yml", "concurrency: {per_type: {'a b': 1}}", "as a policy"),
        ("loopr", "loopr.yml", "a: &a {b: *a}", "loopr.yml: it holds itself"),
        ("loopr", "loopr.yml", BOMB, "its aliases make it too large"),
        (
            "agency",
            "config.yaml",
            "agents: {maxConcurrent: 1.5}",
            "agents.maxConcurrent: not a whole number: 1.5",
        ),
        ("cool-workflow", "p.json", '{"maxConcurrent": -1}', "maxConcurrent: -1 is out of range"),
        ("cool-workflow", "p.json", '{"backoffFactor": 0.5}', "retry.factor: 0.5 is out of range"),
        ("cool-workflow", "p.json", "{", "p.json: not JSON"),
        ("gastown", "c.json", '{"scheduler": {"spawn_delay": "soon"}}', "not a duration: 'soon'"),
        ("agent-queue", "c.yaml", "scheduling: {min_task_guarantee: [1]}", "min_task_guarantee"),
    ],
)
def test_bad_files_are_named(tmp_path, name, file, text, message):
    with pytest.raises(Invalid) as refused:
        operation.show(name, str(made(tmp_path, file, text)))
    assert message in refused.value.message
    assert refused.value.exit_code == 2


def test_a_folder_without_the_files_is_named(tmp_path):
    with pytest.raises(
        Invalid, match=r"there is no loopr\.yml or loops\.jsonl or .* in this folder"
    ):
        operation.show("loopr", str(tmp_path))


def test_settings_of_the_home_folder_stay(tmp_path):
    home = TestContext(tmp_path)
    settings = tmp_path / "fairlane.toml"
    settings.write_text('agent = "codex" # ours\n\n[worker]\nslots = 2\n\n[log]\nlevel = "debug"\n')
    document = operation.write(home.context, "loopr", str(EXAMPLES / "loopr" / "loopr.yml"))
    assert settings.read_text() == (
        'agent = "codex" # ours\n\n[worker]\n\n[log]\nlevel = "debug"\n'
    )
    assert document["backups"] == [f"{settings}.bak"]
    again = operation.write(home.context, "loopr", str(EXAMPLES / "loopr" / "loopr.yml"))
    assert (again["written"], again["backups"], again["changed"]) == ([], [], False)


def test_a_key_goes_before_the_tables():
    assert tomllib.loads(base.merged("[worker]\nslots = 2\n", {"agent": "claude"})) == {
        "agent": "claude",
        "worker": {"slots": 2},
    }


def test_a_file_that_cannot_be_written_changes_nothing(tmp_path):
    home = TestContext(tmp_path)
    (tmp_path / "fairlane.toml").symlink_to(tmp_path / "gone" / "fairlane.toml")
    with pytest.raises(Invalid, match=r"fairlane\.toml: cannot be written: No such file"):
        operation.write(home.context, "loopr", str(EXAMPLES / "loopr"))
    assert [file.name for file in tmp_path.iterdir()] == ["fairlane.toml"]
    with home.context.store.read() as reading:
        assert reading.tallies() == []


def test_files_and_store_change_together_or_not_at_all(tmp_path, monkeypatch):
    home = TestContext(tmp_path)
    home.policy('preset = "balanced"\n')
    real = Path.replace

    def full(self, target):
        if target.name == "fairlane.toml":
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(Invalid, match=r"fairlane\.toml: cannot be written: No space left"):
        operation.write(home.context, "loopr", str(EXAMPLES / "loopr"))
    assert home.context.policy_file.read_text() == 'preset = "balanced"\n'
    assert sorted(file.name for file in tmp_path.iterdir()) == ["policy.toml"]
    with home.context.store.read() as reading:
        assert reading.tallies() == []
