"""Every field has a reader, and everything else is refused by name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairlane.intake import fields
from fairlane.intake.fields import Records, parse_jsonl
from fairlane.model.errors import Invalid
from fairlane.model.instant import MINUTE
from fairlane.model.task import Task
from fairlane.model.values import moment

REFUSED = {
    "unknown": ({"promt": "x"}, "unknown field 'promt'", "Did you mean 'prompt'?"),
    "unlike any": ({"zzz": 1}, "unknown field 'zzz'", "Known: agent,"),
    "ours": ({"seq": 4}, "field 'seq' is not for callers", "Take it out."),
    "id": ({"id": "a/b"}, "id: not a proper name: 'a/b'", "letters"),
    "id dots": ({"id": "a..b"}, "id: not a proper name", "without '..'"),
    "id lock": ({"id": "a.lock"}, "id: not a proper name", "'.lock'"),
    "id number": ({"id": 7}, "id: not a proper name: 7", ""),
    "prompt": ({"prompt": 5}, "prompt: not text: 5", "quotes"),
    "zero byte": ({"prompt": "a\0b"}, "prompt: text with a zero byte", ""),
    "surrogate": ({"title": "\ud800"}, "title: text that is not Unicode", ""),
    "long": ({"prompt": "x" * 1_000_001}, "prompt: 1000001 characters are too many", "1000000"),
    "priority text": ({"priority": "1"}, "priority: not a whole number: '1'", ""),
    "priority half": ({"priority": 1.5}, "priority: not a whole number: 1.5", ""),
    "priority true": ({"priority": True}, "priority: not a whole number: True", ""),
    "priority huge": ({"priority": 10**12}, "priority: 1000000000000 is out of range", "from"),
    "attempts": ({"max_attempts": 0}, "max_attempts: 0 is out of range", "from 1"),
    "estimate": ({"estimate_tokens": -1}, "estimate_tokens: -1 is out of range", "from 0"),
    "merge": ({"merge": "squash"}, "merge: 'squash' is none of keep, merge, pr", "Known"),
    "session": ({"session": "resum"}, "session: 'resum' is none of", "mean 'resume'?"),
    "command": ({"command": "rm -rf"}, "command: not a list of arguments", '["sh", "-c"'),
    "command empty": ({"command": [""]}, "command: a command without a program", ""),
    "needs": ({"needs": "a"}, "needs: not a list: 'a'", '["a", "b"]'),
    "needs twice": ({"needs": ["a", "a"]}, "needs: 'a' appears twice", "Take one out."),
    "needs many": ({"needs": ["a"] * 1001}, "needs: 1001 entries are too many", "1000"),
    "artifact up": ({"artifacts": ["a/../../b"]}, "leaves its folder", "without '..'"),
    "artifact root": ({"artifacts": ["/etc/passwd"]}, "'/etc/passwd' leaves its folder", ""),
    "artifact home": ({"artifacts": ["~/x"]}, "leaves its folder", ""),
    "label": ({"labels": ["a b"]}, "labels: not a label: 'a b'", "os=linux"),
    "parallel": ({"parallel": "yes"}, "parallel: not true or false: 'yes'", ""),
    "timeout": ({"timeout": "soon"}, "timeout: not a duration: 'soon'", "30s"),
    "timeout none": ({"timeout": "0s"}, "timeout: not longer than 0s: '0s'", ""),
    "not before": ({"not_before": "noon"}, "not_before: not a time: 'noon'", "2026"),
    "not before zone": ({"not_before": "2026-01-30T12:00:00"}, "time without a zone", ""),
    "not before list": ({"not_before": []}, "not_before: not a time: []", ""),
    "vars": ({"vars": {"a": []}}, "vars: a: not text: []", ""),
    "vars list": ({"vars": ["a"]}, "vars: not a table of names", ""),
    "env name": ({"env": {"A=B": "x"}}, "env: not the name of a variable: 'A=B'", ""),
    "meta": ({"meta": {"a": {1, 2}}}, "meta: not JSON", ""),
    "check names": (
        {"checks": [{"name": "n", "argv": ["a"]}, {"name": "n", "argv": ["b"]}]},
        "checks: 'n' appears twice",
        "Take one out.",
    ),
    "same check": ({"checks": [["a"], ["b"], ["a"]]}, "checks: 'a' appears twice", ""),
}


@pytest.mark.parametrize(("record", "said", "hint"), REFUSED.values(), ids=REFUSED)
def test_what_breaks_a_rule_is_named(record, said, hint):
    with pytest.raises(Invalid) as refused:
        fields.read(record)
    assert said in refused.value.message
    assert hint in refused.value.hint
    assert refused.value.exit_code == 2


def test_an_environment_value_is_not_told():
    with pytest.raises(Invalid, match="env: TOKEN: its value is not text") as refused:
        fields.read({"env": {"TOKEN": 12345}})
    assert "12345" not in str(refused.value.document())


def test_values_are_typed():
    read = fields.read(
        {
            "id": "a",
            "timeout": "1h30m",
            "not_before": "2026-01-30T12:00:00+01:00",
            "needs": ["b", "c"],
            "artifacts": ["./out//x.txt"],
            "vars": {"n": 3},
            "group": None,
            "command": ["make", ""],
        }
    )
    assert read["timeout"] == 90 * MINUTE
    assert read["not_before"] == moment(datetime(2026, 1, 30, 11, tzinfo=UTC))
    assert read["needs"] == ("b", "c")
    assert read["artifacts"] == ("out/x.txt",)
    assert read["vars"] == {"n": "3"}
    assert read["command"] == ("make", "")
    assert "group" not in read


def test_checks_that_begin_alike_get_names_of_their_own():
    rows = [["npm", "run", "a"], ["npm", "run", "b"], {"name": "npm run (2)", "argv": ["c"]}]
    read = fields.read({"checks": rows})["checks"]
    assert [one.name for one in read] == ["npm run", "npm run (3)", "npm run (2)"]
    assert [one.argv[-1] for one in read] == ["a", "b", "c"]


def test_a_new_task_is_the_plain_task():
    values: fields.TaskValues = {
        "id": "a",
        "seq": 4,
        "needs": ("b",),
        "created_at": 7,
        "meta": {"x": 1},
    }
    assert fields.new_task(values) == Task(**values)


def test_lines_are_read_and_a_bad_one_is_named():
    read = parse_jsonl('{"id": "a"}\n\n  \n{"id": "b"}\n', "tasks.jsonl")
    assert [row["id"] for row in read.rows] == ["a", "b"]
    assert read.where(1) == "tasks.jsonl:4"
    with pytest.raises(Invalid, match=r"tasks\.jsonl:2: not JSON"):
        parse_jsonl('{"id": "a"}\n{"id":\n', "tasks.jsonl")
    with pytest.raises(Invalid, match=r"tasks\.jsonl:1: not a task: '\[1\]'"):
        parse_jsonl("[1]\n", "tasks.jsonl")
    with pytest.raises(Invalid, match=r"tasks\.jsonl:1: not JSON: Extra data"):
        parse_jsonl('{"id": "a"},{"id": "b"}\n', "tasks.jsonl")


def test_one_record_needs_no_name():
    assert Records.of([{}]).where(0) == ""
    assert Records.of([{}, {}]).where(1) == "task 2"
