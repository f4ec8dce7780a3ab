"""The table of `make bench` says what was asked, and whether it holds; small parts of it run."""

from __future__ import annotations

import json
import sqlite3
from xml.etree import ElementTree as ET

import pytest

from bench import performance
from bench.__main__ import main, table
from bench.homes import home
from bench.measure import LIFE, Row, growth, median_pair, percentile99, show_seconds, spent_in
from bench.recorded import recorded, same_rows
from fairlane.service import tasks
from fairlane.store.sqlite.store import SqliteStore


@pytest.mark.parametrize(
    ("ratio", "asked", "passed"),
    [
        (1200, ">= 1,000", True),
        (999, ">= 1,000", False),
        (1.5, "<= 1.5", True),
        (1.6, "<= 1.5", False),
        (1.0, "> 1", False),
        (0.1, "", True),
    ],
)
def test_a_row_knows_whether_it_passes(ratio, asked, passed):
    assert Row("round", "1 ms", "peer 2 ms", ratio, asked).passed is passed


def test_what_could_not_be_measured_is_not_reached():
    row = Row("round", "1 ms", "peer is not installed", asked="> 1")
    assert (row.passed, row.verdict) == (False, "not measured")


def test_the_table_is_readable():
    rows = [Row("round", "1 ms", "peer 2 s", 2000, ">= 1,000"), Row("memory", "9 MiB", "–")]
    assert table(rows).splitlines() == [
        "| what   | ours  | against  | ratio | asked    | reached |",
        "| ------ | ----- | -------- | ----- | -------- | ------- |",
        "| round  | 1 ms  | peer 2 s | 2,000 | >= 1,000 | yes     |",
        "| memory | 9 MiB | –        | –     | –        | –       |",
    ]


def test_the_first_calls_are_not_counted():
    calls: list[str] = []
    median_pair(lambda: calls.append("a"), lambda: calls.append("b"), repeats=1)
    assert calls == ["a", "b", "a", "b"]


def test_each_size_is_beside_the_first():
    rows = growth("round", "lanes", {10: 0.001, 1_000: 0.003})
    assert [(row.what, row.against, row.ratio) for row in rows] == [
        ("round, 10 lanes", "10 lanes 1 ms", 1),
        ("round, 1,000 lanes", "10 lanes 1 ms", 3),
    ]


@pytest.mark.parametrize(("count", "nth"), [(1, 1), (10, 10), (100, 99), (200, 198)])
def test_one_in_a_hundred_is_slower(count, nth):
    assert percentile99([*range(1, count + 1)]) == nth


def test_the_time_in_a_function_is_measured_and_its_answer_kept():
    with spent_in(performance, "filled") as spent:
        text = performance.filled(f"{performance.BEGIN}{performance.END}", "x")
    assert text == f"{performance.BEGIN}\nx\n{performance.END}"
    assert spent.seconds > 0


@pytest.mark.parametrize(
    ("length", "shown"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4e-5, "40 µs"), (7e-9, "7 ns")]
)
def test_lengths_have_a_fitting_unit(length, shown):
    assert show_seconds(length) == shown


def test_an_unknown_part_is_refused(capsys):
    assert main(["store,plane"]) == 2
    assert "No bench 'plane'. Known: commands, compaction, daemon," in capsys.readouterr().err


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("planner,policy", "filter, score and sort all tasks"),
        ("rounds", "in flight, 5 projects, warm"),
        ("store", "the same statements in 3 transactions"),
    ],
)
def test_a_part_runs_small(part, shown, capsys):
    assert main(["--small", part]) == 0
    assert shown in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("part", ["compaction", "http", "simulation"])
def test_a_part_with_processes_runs_small(part, capsys):
    assert main(["--small", part]) == 0
    assert "| what " in capsys.readouterr().out


def test_peers_that_are_missing_are_named(monkeypatch, capsys):
    monkeypatch.setattr("bench.peers.find_spec", lambda name: None)
    assert main(["--small", "store"]) == 0
    missing = [line for line in capsys.readouterr().out.splitlines() if "not measured" in line]
    named = [line.split("|")[3].partition(" is not installed")[0].strip() for line in missing]
    assert named == ["Huey", "persist-queue", "the best peer"]


# What is made of the results.


def test_the_results_come_into_the_document(tmp_path):
    rows = [
        {"what": "round", "ours": "1 ms", "against": "peer 2 s", "ratio": 2000, "asked": ""},
        {"what": f"{LIFE}add", "ours": "1 ms", "against": "4 ms", "ratio": 0.25, "asked": ""},
        {"what": f"{LIFE}start", "ours": "3 ms", "against": "4 ms", "ratio": 0.75, "asked": ""},
    ]
    results, page, picture = (tmp_path / name for name in ("r.json", "p.md", "p.svg"))
    results.write_text(json.dumps({"versions": "Python 4 & more", "rows": rows}))
    page.write_text(f"# Speed\n{performance.BEGIN}\nold\n{performance.END}\nThe end.\n")
    for _ in range(2):
        assert performance.main(results, page, picture) == 0
    text = page.read_text()
    assert text.startswith(f"# Speed\n{performance.BEGIN}\nThese figures come from `make bench`")
    assert text.endswith(f"\n{performance.END}\nThe end.\n")
    assert text.count("| round ") == 1
    assert "![A task's life: add 25%, start 75%](pictures/p.svg)" in text
    assert "old" not in text
    drawn = ET.fromstring(picture.read_text())
    bars = [part.get("width") for part in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert {"180.0", "540.0"} <= set(bars)


def test_without_results_nothing_is_written(tmp_path, capsys):
    page = tmp_path / "p.md"
    assert performance.main(tmp_path / "r.json", page, tmp_path / "p.svg") == 2
    assert "Run `make bench` first." in capsys.readouterr().err
    assert not page.exists()


def test_a_document_without_marks_is_refused():
    with pytest.raises(ValueError, match="the document lacks"):
        performance.filled("# Speed", "x")


# The bare side.


def test_what_is_replayed_is_what_was_written(tmp_path):
    context = home(tmp_path / "home")
    works = [lambda: tasks.add(context, [{"prompt": "one"}, {"prompt": "two"}])] * 2
    with recorded(context, tmp_path / "bare.db", works) as bare:
        assert bare.transactions == 1
        bare()
        bare()
    connection = sqlite3.connect(tmp_path / "bare.db")
    assert connection.execute("SELECT count(*) FROM tasks").fetchone() == (4,)
    connection.close()
    context.store.close()


def test_what_was_not_replayed_is_an_error(tmp_path):
    context = home(tmp_path / "home")
    works = [lambda: tasks.add(context, [{"prompt": "one"}])] * 2
    with (
        pytest.raises(AssertionError, match="not everything was replayed"),
        recorded(context, tmp_path / "bare.db", works) as bare,
    ):
        bare()
    context.store.close()


def test_rows_that_differ_are_an_error(tmp_path):
    one, other = (home(tmp_path / name) for name in ("one", "other"))
    assert isinstance(one.store, SqliteStore)
    assert isinstance(other.store, SqliteStore)
    same_rows(one.store.connection, other.store.connection)
    tasks.add(other, [{"prompt": "one"}])
    with pytest.raises(AssertionError, match="do not write the same rows of"):
        same_rows(one.store.connection, other.store.connection)
    for context in (one, other):
        context.store.close()
