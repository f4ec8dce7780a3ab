"""Files of other schedulers that were made to break a conversion: refused in a line, and soon."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairlane.model.errors import Invalid
from fairlane.model.instant import parse_instant
from fairlane.model.values import moment
from fairlane.service.conversion import convert
from fairlane.service.conversion.operation import show

pytestmark = pytest.mark.slow

YAML = {"loopr": "loopr.yml", "agency": "config.yaml", "agent-queue": "config.yaml"}
LEVELS = range(1, 60)
BOMBS = {
    "lists": "k0: &k0 [x, x]\n" + "".join(f"k{n}: &k{n} [*k{n - 1}, *k{n - 1}]\n" for n in LEVELS),
    "tables": "k0: &k0 {}\n"
    + "".join(f"k{n}: &k{n} {{x: *k{n - 1}, y: *k{n - 1}}}\n" for n in LEVELS),
    "merges": "k0: &k0 {p: 1}\n"
    + "".join(f"k{n}: &k{n} {{<<: [*k{n - 1}, *k{n - 1}]}}\n" for n in LEVELS),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("name", YAML)
def test_aliases_that_would_fill_the_memory_are_refused(
    tmp_path: Path, name: str, bomb: str
) -> None:
    (tmp_path / YAML[name]).write_text(BOMBS[bomb])
    with pytest.raises(Invalid, match="too large"):
        convert(name, tmp_path)


@pytest.mark.parametrize(
    "value", ["9999-99-99", "1" * 5000, "[" * 5000, "2001-12-14t21:59:43-99:99"]
)
@pytest.mark.parametrize("name", YAML)
def test_a_value_that_yaml_itself_cannot_read_is_refused(
    tmp_path: Path, name: str, value: str
) -> None:
    (tmp_path / YAML[name]).write_text(f"a: {value}\n")
    with pytest.raises(Invalid, match="not YAML"):
        convert(name, tmp_path)


@pytest.mark.parametrize("name", YAML)
def test_an_error_shows_nothing_of_a_line_that_may_be_a_secret(tmp_path: Path, name: str) -> None:
    (tmp_path / YAML[name]).write_text('llm:\n  api_key: "sk-secret\n  b: 1\n')
    with pytest.raises(Invalid, match="line 4") as refused:
        convert(name, tmp_path)
    assert "secret" not in str(refused.value.document())


@pytest.mark.parametrize("name", [*YAML, "gastown", "cool-workflow"])
@pytest.mark.parametrize("pipe", ["pipe", "pipe.db"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str, pipe: str) -> None:
    os.mkfifo(tmp_path / pipe)
    with pytest.raises(Invalid, match="a pipe"):
        convert(name, tmp_path / pipe)


@pytest.mark.parametrize(
    "text",
    [
        '"agents.perflow.x\\ncaps.all = 99\\n#": 3',
        'agents: {per_flow: {"a\\"b": 3}}',
        f'retry: {{base: "{"9" * 400}h"}}',
        f'retry: {{jitter: "{"9" * 400}%"}}',
    ],
)
def test_no_key_or_number_of_agency_becomes_other_rules(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text + "\n")
    with pytest.raises(Invalid):
        show("agency", str(tmp_path))


def town(folder: Path, settings: object, rig: object = None, state: object = None) -> str:
    files = {
        "settings/config.json": settings,
        "mayor/rigs.json": {"rigs": {"r": rig or {}}},
        ".runtime/scheduler-state.json": state or {},
    }
    for name, document in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(document))
    return str(folder)


def test_arguments_of_an_agent_may_repeat_and_hold_any_text(tmp_path: Path) -> None:
    args = ["--add-dir", "a", "--add-dir", "b", "😀", "two\nlines\x7f", 'a"b']
    answer = show(
        "gastown", town(tmp_path, {"agents": {"my": {"command": "claude", "args": args}}})
    )
    assert "😀" in answer["settings"]


@pytest.mark.parametrize("local", ["~nobody-here/x", "a" * 5000, "a\0b", "/etc/passwd/x", "\ud800"])
def test_a_clone_that_cannot_be_is_none(tmp_path: Path, local: str) -> None:
    answer = show("gastown", town(tmp_path, {}, {"local_repo": local}))
    assert answer["projects"] == [{"name": "r"}]


@pytest.mark.parametrize(
    "url", ["https://me:p@ss-secret@host/x.git", "https://host/x.git?access_token=secret"]
)
def test_no_note_shows_the_password_of_a_url(tmp_path: Path, url: str) -> None:
    answer = show("gastown", town(tmp_path, {}, {"git_url": url}))
    assert "https://host/x.git" in str(answer)
    assert "secret" not in str(answer)


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:00"])
def test_a_time_that_no_calendar_has_is_refused(tmp_path: Path, when: str) -> None:
    with pytest.raises(Invalid, match="not a time"):
        show("gastown", town(tmp_path, {}, state={"paused": True, "paused_at": when}))
    with pytest.raises(Invalid, match="not a time"):
        parse_instant(when)


@pytest.mark.parametrize("when", [10**18, 10**30, -(10**18)])
def test_a_number_that_no_calendar_has_is_refused(when: int) -> None:
    with pytest.raises(Invalid, match="not a time"):
        moment(when)


@pytest.mark.parametrize("key", ["prompt_path", "input_artifact"])
def test_a_loop_with_a_path_of_nobody_is_left_out_alone(tmp_path: Path, key: str) -> None:
    rows = [{"id": "bad", key: "~nobody-here/x"}, {"id": "good", "title": "t"}]
    (tmp_path / "loops.jsonl").write_text("\n".join(map(json.dumps, rows)))
    converted = convert("loopr", tmp_path)
    assert [task.record["id"] for task in converted.tasks] == ["good"]
    assert [item.id for item in converted.skipped] == ["bad"]


def test_placeholders_do_not_fill_the_memory(tmp_path: Path) -> None:
    row = {"id": "a", "prompt": "{{x}}" * 100_000, "context": {"x": "y" * 100_000}}
    (tmp_path / "loops.jsonl").write_text(json.dumps(row))
    assert "longer than" in convert("loopr", tmp_path).skipped[0].reason


def database(folder: Path, *statements: str, tasks: str = "id, project_id, title, status") -> Path:
    file = folder / "agent-queue.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(
            f"""CREATE TABLE projects(id, status); CREATE TABLE tasks({tasks});
            CREATE TABLE task_dependencies(task_id, depends_on_task_id);
            CREATE TABLE token_ledger(tokens_used, timestamp);
            INSERT INTO projects VALUES('p', 'ACTIVE');
            INSERT INTO tasks(id, project_id, status) VALUES('t', 'p', 'READY');"""
        )
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return file


def test_a_column_that_computes_a_huge_value_is_refused(tmp_path: Path) -> None:
    huge = "id, project_id, title AS (hex(zeroblob(400000000))), status"
    with pytest.raises(Invalid, match="too big"):
        convert("agent-queue", database(tmp_path, tasks=huge))


def test_a_project_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="not a project name: None"):
        convert("agent-queue", database(tmp_path, "INSERT INTO projects VALUES(NULL, 'ACTIVE')"))


def test_a_table_of_an_unknown_module_is_named_and_the_rest_comes_in(tmp_path: Path) -> None:
    foreign = "CREATE VIRTUAL TABLE memory USING vec0(x)"
    file = database(
        tmp_path,
        "PRAGMA writable_schema = 1",
        f"INSERT INTO sqlite_master VALUES('table', 'memory', 'memory', 0, '{foreign}')",
    )
    converted = convert("agent-queue", file)
    assert len(converted.tasks) == 1
    assert "table memory" in converted.unknown
