"""Lines of JSON: the model's names, what others call them, and lines that are no task."""

from __future__ import annotations

import json

import pytest

from fairlane.intake.sources import jsonl, names, source_named
from fairlane.intake.sources.base import Item, Standing, Where
from fairlane.model.errors import Invalid


def read(*lines: object) -> tuple[Item, ...]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return jsonl.read(Where(text=text)).items


def test_what_others_call_a_field_is_understood():
    (found,) = read(
        {
            "id": 7, "name": "Title", "description": "Prompt", "depends_on": ["a", 3, "a"],
            "metadata": {"k": 1}, "maxAttempts": 2, "cwd": "/x", "verify": ["make"],
        }
    )  # fmt: skip
    assert (found.id, found.needs) == ("7", ("a", "3"))
    assert found.record == {
        "title": "Title",
        "prompt": "Prompt",
        "max_attempts": 2,
        "meta": {"cwd": "/x", "verify": ["make"], "k": 1},
    }


def test_the_models_own_name_wins():
    (found,) = read({"id": "a", "title": "ours", "name": "theirs", "needs": "b", "type": "review"})
    assert found.record == {"title": "ours", "kind": "review", "meta": {"name": "theirs"}}
    assert found.needs == ("b",)


@pytest.mark.parametrize(
    ("status", "standing"),
    [("todo", Standing.OPEN), ("In_Progress", Standing.TAKEN), ("cancelled", Standing.CLOSED)],
)
def test_a_status_says_whether_it_may_be_taken(status, standing):
    (found,) = read({"id": "a", "title": "x", "status": status})
    assert found.standing is standing
    assert "status" not in found.record


def test_a_task_without_an_id_is_known_by_what_it_says():
    row = {"title": "x"}
    first = read(row, {"title": "y"}, row)
    assert [item.id for item in read({"title": "y"}, row, row)] == [
        first[1].id, first[0].id, first[2].id,
    ]  # fmt: skip
    assert len({item.id for item in first}) == 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{no", "not JSON"),
        ("[1]", "not a task: '[1]'"),
        ({"id": [1]}, "id: not a name: [1]"),
        ({"id": ""}, "id: not a name: ''"),
        ({"id": "a", "needs": 5}, "needs: not a list of ids: 5"),
        ({"id": "a", "depends_on": [{}]}, "needs: not a list of ids"),
        ({"id": "a", "meta": 3, "x": 1}, "not a table of names: 3"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_line_that_is_no_task_is_named(line, reason):
    text = line if isinstance(line, str) else json.dumps(line)
    found = jsonl.read(Where(text=f'\n{{"id": "good"}}\n{text}\n'))
    assert [item.id for item in found.items] == ["good"]
    (bad,) = found.left_out
    assert (bad.id, bad.where, bad.bad) == ("stdin:3", "stdin:3", True)
    assert reason in bad.reason


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(Invalid, match="there is nothing to read"):
        jsonl.read(Where())
    with pytest.raises(Invalid, match="cannot be read"):
        jsonl.read(Where(tmp_path / "none"))
    (tmp_path / "latin").write_bytes(b"\xff\xfe")
    with pytest.raises(Invalid, match="not UTF-8 text"):
        jsonl.read(Where(tmp_path / "latin"))


def test_a_byte_order_mark_is_no_part_of_it(tmp_path):
    (tmp_path / "a").write_bytes(b'\xef\xbb\xbf{"id": "a"}\r\n')
    assert [item.id for item in jsonl.read(Where(tmp_path / "a")).items] == ["a"]


# Sources of third parties


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed package that adds two sources, one of which is none."""
    folder = tmp_path / "site"
    info = folder / "todo_source-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: todo-source\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fairlane.sources]\ntodo = todo_source\nbroken = todo_source:NOTHING\n"
    )
    (folder / "todo_source.py").write_text(
        "from fairlane.intake.sources.base import Found, Item\n"
        "NOTHING = 7\n"
        "def read(where):\n"
        "    return Found((Item('one', {'title': 'From elsewhere'}),))\n"
    )
    monkeypatch.syspath_prepend(str(folder))


def test_a_third_party_adds_a_source_by_an_entry_point(plugin):
    assert {"todo", "jsonl", "queue.json"} <= set(names())
    assert source_named("todo").read(Where()).items[0].record["title"] == "From elsewhere"
    with pytest.raises(Invalid, match="'broken' is no source"):
        source_named("broken")
    with pytest.raises(Invalid, match="there is no source 'tood'") as refusal:
        source_named("tood")
    assert refusal.value.hint == "Did you mean 'todo'?"
