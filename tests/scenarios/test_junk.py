"""Whatever stands in a scenario: it is planned, or it is refused with a name; it never breaks."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.errors import Invalid
from fairlane.planner.conclude import plan_bytes
from fairlane.service.planning import PLANNERS, plan_scenario
from fairlane.service.scenario import build, to_mapping
from tests.scenarios.test_scenarios import EXAMPLES

TABLES = [to_mapping(file.read_bytes()) for file in sorted(EXAMPLES.glob("*.toml"))]
WORDS = [
    "",
    "a",
    "all",
    "web",
    "project:web",
    "5m",
    "-5m",
    "0s",
    "9999999w",
    "2026-01-30T12:00:00Z",
    "queued",
]
WORDS += ["running", "none", "review-1", "login-form", "w1", "box1", "claude", "\x1b[2J", "a" * 200]
JUNK = st.one_of(
    st.sampled_from(WORDS),
    st.integers(-2, 3),
    st.sampled_from([10**12, -(10**30), Decimal("2.5"), Decimal("NaN"), True, False, None]),
    st.sampled_from(
        [datetime(2026, 1, 30, 12, tzinfo=UTC), datetime(2026, 1, 30), date(2026, 1, 30)]
    ),
    st.lists(st.sampled_from(WORDS), max_size=2),
    st.dictionaries(st.sampled_from(WORDS), st.sampled_from(WORDS), max_size=2),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in nested tables and lists."""
    found = [path] if path else []
    if isinstance(value, dict):
        found += [place for key in value for place in places(value[key], (*path, key))]
    elif isinstance(value, list):
        found += [place for at, each in enumerate(value) for place in places(each, (*path, at))]
    return found


@st.composite
def spoiled(draw: st.DrawFn) -> dict[str, Any]:
    """An example in which one to three values are something else."""
    tables: dict[str, Any] = deepcopy(draw(st.sampled_from(TABLES)))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(places(tables)))
        table: Any = tables
        for step in path:
            table = table[step]
        table[last] = draw(JUNK)
    return tables


def complaint(tables: dict[str, Any]) -> str:
    """What is said about tables that cannot be planned; nothing about those that can."""
    try:
        build(tables, "spoiled.toml")
    except Invalid as error:
        return error.message
    return ""


@given(spoiled())
def test_a_spoiled_scenario_is_planned_or_refused(tables):
    said = complaint(tables)
    if said:
        assert said.startswith("spoiled.toml")
        return
    scenario = build(tables, "spoiled.toml")
    one, other = (plan_bytes(plan_scenario(scenario, planner)) for planner in PLANNERS)
    assert one == other
