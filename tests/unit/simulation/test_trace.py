"""Traces: what is written is read back, and repeats what was simulated or has happened."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fairlane.engine.end_attempt import Report
from fairlane.model.errors import Invalid
from fairlane.model.instant import HOUR, MINUTE, SECOND, parse_instant
from fairlane.model.task import Outcome, Task
from fairlane.policy.load import preset_names
from fairlane.policy.policy import Policy
from fairlane.service import groups, projects, queue, tasks
from fairlane.simulation.engine import simulate
from fairlane.simulation.run import Run
from fairlane.simulation.world import Act, Fate, Shift
from fairlane.simulation.worlds.described import Workload
from fairlane.simulation.worlds.recorded import Recorded
from fairlane.simulation.worlds.samples import LASTS
from fairlane.simulation.worlds.trace import load_trace, read_trace
from fairlane.simulation.worlds.trace_writer import trace_of, trace_of_store
from fairlane.simulation.worlds.workload import parse_workload, read_text
from tests.unit.contexts import TestContext

MONDAY = parse_instant("2026-01-05T00:00:00Z")
HEAD = '{"trace": 1, "begin": "2026-01-05T00:00:00Z"}'
BALANCED = Policy.preset("balanced")

EVERYTHING = """
days = 1
agent = "mine"
[agents.mine]
pool = "own"
[projects.web]
weight = 3
budgets = [{ tokens = 60_000, window = "6h" }]
[projects.api]
agent = "codex"
max_in_flight = 2
[groups.top]
priority = 20
[groups.in-it]
parent = "top"
title = "Inside"
[work.code]
duration = { median = "6m", p90 = "25m" }
tokens = { input = 900, output = { median = 300, p90 = 2_000 } }
usd_per_million = 5
failed = 0.1
lost = 0.1
throttled = 0.1
retry_after = "3m"
reports = 2
[work.default]
duration = { mean = "4m" }
[[source]]
name = "w"
project = "web"
group = "in-it"
per_hour = 6
until = "2h"
steps = [{ name = "a" }, { name = "b", kind = "test", needs = ["a"], count = 2 }]
[[source]]
name = "p"
project = "api"
every = "12m"
until = "2h"
priority = 50
[[pools.own.quota]]
window = "30m"
tokens = 20_000
[[pools.own.quota]]
window = "1m"
requests = 2
resets = true
[[pools.openai.outage]]
from = "30m"
until = "50m"
[[worker]]
name = "a"
slots = 2
crashes = ["1h"]
[[worker]]
name = "b"
slots = 3
hours = { from = "00:20", until = "01:40" }
[[act]]
at = "1h15m"
do = "pause"
scope = "project:api"
[[act]]
at = "1h30m"
do = "resume"
scope = "project:api"
[[act]]
at = "1h49m"
do = "cancel"
ids = ["p-10"]
"""


def without_seed(run: Run) -> Run:
    return replace(run, seed=0)


@pytest.fixture(scope="module")
def world() -> Workload:
    return parse_workload(read_text(EVERYTHING.encode(), "w"))


@pytest.fixture(scope="module")
def run(world) -> Run:
    return simulate(world, BALANCED, 3)


@pytest.mark.slow
@pytest.mark.parametrize("preset", preset_names())
def test_a_simulation_is_repeated_exactly(world, preset, tmp_path):
    policy, path = Policy.preset(preset), tmp_path / "trace.jsonl"
    run = simulate(world, policy, 3)
    assert {row.outcome for row in run.attempts} >= {"succeeded", "failed", "lost", "throttled"}
    path.write_text("".join(f"{line}\n" for line in trace_of(world, run)))
    trace = load_trace(path)
    again = simulate(trace, policy, 99)
    assert without_seed(again) == without_seed(run)
    assert list(trace_of(trace, again)) == path.read_text().splitlines(), "it is its own trace"


@pytest.mark.slow
def test_another_policy_sees_the_same_work(world, run):
    """What arrives, and how attempts go that were recorded, does not depend on policy or seed."""
    trace = read_trace(trace_of(world, run))
    serial = simulate(trace, Policy.preset("serial-lanes"), 4)
    assert serial.attempts != run.attempts
    assert [task.arrived_at for task in serial.tasks] == [task.arrived_at for task in run.tasks]
    kinds = {task.task: task.kind for task in run.tasks}
    for row in run.attempts:
        task = Task(row.task, kind=kinds[row.task])
        assert trace.fate(1, task, row.number) == world.fate(3, task, row.number)


def lines(*rows: str | dict[str, Any]) -> Recorded:
    text = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    return read_trace([HEAD, *text])


def added(name: str, at: str = "2026-01-05T01:00:00Z", **values: Any) -> dict[str, Any]:
    return {"arrival": at, "tasks": [{"id": name, **values}]}


ODD = {
    "attempt": "a", "number": 2, "at": "1h", "seconds": 0.000001, "outcome": "throttled",
    "tokens": {"input": 5}, "usd": 0.1, "retry_after": 90.5, "reports": 3,
    "resets_at": "2026-01-05T05:00:00Z",
}  # fmt: skip


def test_what_lines_mean():
    trace = read_trace(
        [
            '{"trace": 1, "begin": "2026-01-05T00:00:00Z", "days": 2, "projects": {"web": {}}}',
            "",
            '{"worker": "box", "at": "2h", "slots": 0, "sudden": true}',
            '{"worker": "box", "at": "1h", "labels": ["gpu"]}',
            json.dumps(ODD),
            '{"attempt": "a", "number": 1, "seconds": 60, "tokens": 7}',
            '{"act": "pause", "at": "3h", "scope": "project:web"}',
            '{"arrival": "2h", "tasks": [{"id": "b", "needs": ["a"]}, {"id": "c"}]}',
            b'{"arrival": "1h", "tasks": [{"id": "a", "project": "web", "agent": "codex"}]}',
        ]
    )
    assert (trace.begin, trace.days) == (MONDAY, 2)
    assert trace.shifts() == (
        Shift(MONDAY + HOUR, "box", None, ("gpu",)),
        Shift(MONDAY + 2 * HOUR, "box", 0, (), True),
    )
    assert trace.acts() == (Act(MONDAY + 3 * HOUR, "pause", {"scope": "project:web"}),)
    assert [row.at - MONDAY for row in trace.arrived] == [HOUR, 2 * HOUR]
    task = Task("a", project="web", agent="codex")
    assert trace.fate(1, task, 1) == Fate(MINUTE, tokens=(0, 7, 0, 0))
    assert trace.fate(1, task, 2) == Fate(
        1, Outcome.THROTTLED, (5, 0, 0, 0), 100_000, retry_after=90_500_000,
        resets_at=MONDAY + 5 * HOUR, reports=3,
    )  # fmt: skip


def test_attempts_beyond_the_recorded_ones_are_drawn_from_those_alike():
    rows: list[dict[str, Any]] = []
    for number in range(6):
        rows.append(added(f"a{number}", kind="x", agent="codex"))
        rows.append({"attempt": f"a{number}", "number": 1, "seconds": 60 + number})
        rows.append(added(f"b{number}", kind="y"))
        rows.append({"attempt": f"b{number}", "number": 1, "seconds": 600 + number})
    trace = lines(*rows)

    def drawn(**values: Any) -> set[int]:
        tasks = [Task(f"new{number}", **values) for number in range(200)]
        return {trace.fate(1, task, 1).lasts // SECOND for task in tasks}

    assert drawn(kind="x", agent="codex") == set(range(60, 66))
    assert drawn(kind="y", agent="claude", project="other") == set(range(600, 606))
    assert drawn(kind="z", agent="gemini") == {*range(60, 66), *range(600, 606)}
    assert trace.fate(1, Task("a0", kind="x", agent="codex"), 2).lasts // SECOND in range(60, 66)
    assert trace.fate(1, Task("a0", kind="x", agent="codex"), 1, ran=61 * SECOND).lasts > MINUTE


def test_a_trace_without_attempts_has_the_defaults_of_the_policy():
    fate = lines(added("a")).fate(1, Task("a"), 1)
    assert fate == Fate(LASTS, tokens=(0, BALANCED.share.default_estimate, 0, 0))


REFUSED = {
    "{": (2, "not JSON"),
    "[1]": (2, "not a JSON object: [1]"),
    '{"a": 1, "a": 2}': (2, "not JSON: key 'a' is given twice"),
    '{"tasks": []}': (2, "neither an arrival nor an attempt, a worker or an act"),
    '{"arrival": "1h"}': (2, "tasks is missing"),
    '{"arrival": "yesterday", "tasks": []}': (2, "arrival: not a time"),
    '{"arrival": "1h", "tasks": [3]}': (2, "tasks: not a table: 3"),
    '{"arrival": "1h", "tasks": [{}]}': (2, "a task without id"),
    '{"arrival": "1h", "tasks": [{"id": "a"}, {"id": "a"}]}': (2, "'a' appears twice"),
    '{"arrival": "1h", "tasks": [{"id": "a", "env": {}}]}': (2, "unknown field 'env'"),
    '{"arrival": "1h", "tasks": [{"id": "a", "kind": "x/y"}]}': (2, "kind: not a proper name"),
    '{"arrival": "1h", "tasks": [{"id": "a", "project": "w"}]}': (2, "there is no project 'w'"),
    '{"attempt": "a", "number": 1}': (2, "seconds is missing"),
    '{"attempt": "a", "number": 1, "seconds": -1}': (2, "seconds: -1 is out of range"),
    '{"attempt": "a", "number": 1, "seconds": 0.0000001}': (2, "at most six decimals"),
    '{"attempt": "a", "number": 1, "seconds": NaN}': (2, "seconds: not a number"),
    '{"attempt": "a", "number": 1, "seconds": 1, "outcome": "released"}': (2, "'released' is none"),
    '{"attempt": "a", "number": 1, "seconds": 1, "colour": 1}': (2, "unknown key 'colour'"),
    '{"worker": "a"}': (2, "at is missing"),
    '{"act": "clear", "at": "1h"}': (2, "act.do: 'clear' is none of"),
    '{"attempt": "a", "number": 1, "seconds": 1}\n{"attempt": "a", "number": 1, "seconds": 1}': (
        3, "attempt 1 of a appears twice",
    ),
    '{"worker": "' + "x" * 1_000_000 + '"}': (2, "a line of 1000014 bytes"),
    "[" * 100_000: (2, "not JSON"),
    '{"attempt": "a", "number": 1, "seconds": 1e99999999999999999999}': (2, "not JSON"),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_refused_with_the_line(text):
    number, message = REFUSED[text]
    with pytest.raises(Invalid) as refused:
        read_trace([HEAD, *text.split("\n")], "t.jsonl")
    assert refused.value.message.startswith(f"t.jsonl:{number}: ")
    assert message in refused.value.message
    assert (refused.value.exit_code, refused.value.error_code) == (2, "invalid_trace")


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("", "t: an empty trace"),
        ("{}", "t:1: the first line has no trace"),
        ('{"trace": 2}', "t:1: trace: 2 is out of range"),
        ('{"trace": 1}', "t:1: the first line has no begin"),
        ('{"trace": 1, "begin": "2026-01-05T00:00:00Z", "day": 1}', "t:1: unknown key 'day'"),
        ('{"arrival": "1h", "tasks": []}', "t:1: unknown key 'arrival'"),
        (b'{"trace": "\xff"}', "t:1: not JSON"),
    ],
)
def test_the_first_line(first, message):
    with pytest.raises(Invalid) as refused:
        read_trace([first], "t")
    assert refused.value.message.startswith(message)


def test_files(tmp_path):
    with pytest.raises(Invalid, match="there is no such file"):
        load_trace(tmp_path / "a")
    with pytest.raises(Invalid, match="cannot be read: Is a directory"):
        load_trace(tmp_path)


@pytest.fixture
def home(tmp_path) -> TestContext:
    made = TestContext(tmp_path, {"agents": {"mine": {"pool": "own", "argv": ["true"]}}})
    made.policy("caps.all = 2\nlease.ttl = '1h'")
    return made


def written(home: TestContext, since: int = 0) -> list[dict[str, Any]]:
    """The lines of the trace of what has happened."""
    return [json.loads(line) for line in trace_of_store(home.context, since)]


def test_what_happened_is_told_by_time(home):
    projects.add_project(home.context, "web", {"weight": 3, "agent": "mine"})
    groups.add_group(home.context, "top", priority=7)
    groups.add_group(home.context, "part", parent="top")
    home.add({"id": "a", "project": "web", "prompt": "secret"})
    home.add({"id": "b", "needs": ["a"], "group": "part", "timeout": "2h", "labels": []})
    (lease,) = home.lease()
    home.wait(90 * SECOND)
    home.fail(lease["lease"])
    queue.pause(home.context, "project:web")
    home.wait(HOUR)
    queue.resume(home.context, "project:web")
    (lease,) = home.lease()
    home.wait(MINUTE)
    home.complete(lease["lease"], Report((1, 2, 3, 4), 500_000))
    (lease,) = home.lease()
    tasks.cancel(home.context, ["b"])
    home.fail(lease["lease"], outcome="canceled")
    head, *rest = written(home)
    assert head == {
        "trace": 1,
        "begin": "2026-01-30T12:00:00Z",
        "agents": {"mine": {"pool": "own"}},
        "projects": {"default": {"weight": 1}, "web": {"weight": 3, "agent": "mine"}},
        "groups": {"top": {"priority": 7}, "part": {"parent": "top"}},
    }
    assert rest == [
        {
            "arrival": "2026-01-30T12:00:00Z",
            "tasks": [
                {"id": "a", "project": "web", "kind": "code", "agent": "mine", "pool": "own"}
            ],
        },
        {
            "arrival": "2026-01-30T12:00:00Z",
            "tasks": [
                {
                    "id": "b", "project": "default", "kind": "code", "agent": "claude",
                    "priority": 7, "group": "part", "pool": "anthropic", "timeout": "2h",
                    "needs": ["a"],
                }
            ],
        },
        {
            "attempt": "a", "number": 1, "at": "2026-01-30T12:00:00Z", "seconds": 90.0,
            "outcome": "failed",
        },
        {"act": "pause", "at": "2026-01-30T12:01:30Z", "scope": "project:web"},
        {"act": "resume", "at": "2026-01-30T13:01:30Z", "scope": "project:web"},
        {
            "attempt": "a", "number": 2, "at": "2026-01-30T13:01:30Z", "seconds": 60.0,
            "outcome": "succeeded", "usd": 0.5,
            "tokens": {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4},
        },
        {"act": "cancel", "at": "2026-01-30T13:02:30Z", "ids": ["b"]},
    ]  # fmt: skip


def test_it_can_be_simulated_and_starts_the_same(home):
    home.add(*({"id": f"t{number}", "kind": "xy"[number % 2]} for number in range(8)))
    home.wait(MINUTE)  # nobody was there
    held, bad = home.lease(), {("t3", 1), ("t6", 1)}
    while held:
        home.wait(7 * MINUTE)
        first = held.pop(0)
        is_bad = (first["task"], first["attempt"]) in bad
        (home.fail if is_bad else home.finish)(first["lease"])
        held += home.lease()
    with home.context.store.read() as reading:
        rows = [attempt for attempt, _ in reading.ended_attempts(0, 100)]
    happened = sorted((row.leased_at - MINUTE, row.task, row.number) for row in rows)
    run = simulate(read_trace(trace_of_store(home.context)), home.context.policy())
    assert [(row.leased_at, row.task, row.number) for row in run.attempts] == happened
    assert len(happened) == 10
    assert {task.status for task in run.tasks} == {"done"}


def test_since(home):
    home.add({"id": "old"}, {"id": "waits", "not_before": "2026-02-01T00:00:00Z"})
    (lease,) = home.lease()
    home.wait(HOUR)
    home.finish(lease["lease"])
    home.wait(HOUR)
    since = home.clock.at
    home.add({"id": "new"})
    (lease,) = home.lease()
    home.wait(MINUTE)
    home.finish(lease["lease"], output=5)
    head, *rest = written(home, since)
    assert head["begin"] == "2026-01-30T14:00:00Z"
    arrived = [(row["arrival"], row["tasks"][0]["id"]) for row in rest if "arrival" in row]
    assert arrived == [("2026-01-30T14:00:00Z", "waits"), ("2026-01-30T14:00:00Z", "new")]
    assert [row["attempt"] for row in rest if "attempt" in row] == ["new"]
