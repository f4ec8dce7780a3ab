"""Whatever a workload or a trace says: it is read, or refused with exit code 2."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.errors import Invalid
from fairlane.simulation.worlds.trace import read_trace
from fairlane.simulation.worlds.workload import parse_workload, read_text

WORKLOAD = read_text(
    b"""
    title = "x"
    begin = 2026-01-05T00:00:00Z
    days = 2
    agent = "mine"
    [agents.mine]
    pool = "own"
    [hours.office]
    days = ["mon"]
    from = "09:00"
    until = "17:00"
    breaks = [["12:00", "13:00"]]
    [projects.web]
    weight = 2
    budgets = [{ tokens = 5, window = "1h" }]
    [groups.top]
    priority = 3
    [work.default]
    duration = { median = "1m", p90 = "2m" }
    tokens = { input = 5, output = [1, 2], cache_read = { mean = 3 } }
    usd_per_million = { input = 0.5 }
    failed = 0.25
    [[source]]
    name = "s"
    project = "web"
    per_hour = 3
    hours = "office"
    labels = ["gpu"]
    steps = [{ name = "a", count = 2 }, { name = "b", needs = ["a"] }]
    [[source]]
    at = ["1h"]
    count = 3
    [[pools.own.quota]]
    window = "1m"
    tokens = 5
    [[pools.own.outage]]
    from = "1h"
    until = "2h"
    [[worker]]
    name = "w"
    hours = "office"
    crashes = ["9h"]
    [[act]]
    at = "1h"
    do = "project_set"
    name = "web"
    values = { weight = 3 }
    """,
    "w",
)
TRACE: list[dict[str, Any]] = [
    {
        "trace": 1, "begin": "2026-01-05T00:00:00Z", "days": 1, "projects": {"web": {"weight": 1}},
        "pools": {"openai": {"quota": [{"window": "1m", "requests": 1}]}},
    },
    {"arrival": "1h", "tasks": [{"id": "a", "project": "web", "needs": ["b"], "priority": 1}]},
    {"attempt": "a", "number": 1, "seconds": 1.5, "tokens": {"input": 1}, "usd": 0.5},
    {"worker": "w", "at": "1h", "slots": 1, "labels": ["x"]},
    {"act": "cancel", "at": "1h", "ids": ["a"]},
]  # fmt: skip

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["1h", "0s", "office", "web", "all", 10**15, -1, 0, 2**70, "\0", "9" * 30]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to every value of a document."""
    rows = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in rows:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def with_value(document: Any, path: tuple[Any, ...], value: object, rename: str | None) -> Any:
    """The document with another value at a path, or with another key."""
    changed = copy.deepcopy(document)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    if rename is not None and isinstance(parent, dict):
        parent[rename] = parent.pop(path[-1])
    else:
        parent[path[-1]] = value
    return changed


CHANGES = st.tuples(VALUES, st.none() | st.text(max_size=6))


def test_the_examples_are_good():
    assert len(list(parse_workload(WORKLOAD).arrivals(1))) > 10
    assert read_trace([json.dumps(line) for line in TRACE]).days == 1


@given(path=st.sampled_from(list(places(WORKLOAD))), change=CHANGES)
def test_a_workload_is_read_or_refused(path, change):
    try:
        workload = parse_workload(with_value(WORKLOAD, path, *change))
    except Invalid as error:
        assert error.error_code == "invalid_workload"  # noqa: PT017 - it may also be good
        return
    for arrival in islice(workload.arrivals(1), 50):
        assert arrival.at >= workload.begin
    list(islice(workload.shifts(), 50))


@given(path=st.sampled_from(list(places(TRACE))), change=CHANGES)
def test_a_trace_is_read_or_refused(path, change):
    lines = [json.dumps(line) for line in with_value(TRACE, path, *change)]
    try:
        read_trace(lines)
    except Invalid as error:
        assert error.error_code == "invalid_trace"  # noqa: PT017 - it may also be good


@given(lines=st.lists(st.binary(max_size=30) | st.text(max_size=30), max_size=4))
def test_any_lines(lines):
    for some in (lines, [json.dumps(TRACE[0]), *lines]):
        try:
            read_trace(some)
        except Invalid as error:
            assert ":" in error.message  # noqa: PT017 - blank lines are good
