"""Cases with known answers: every file beside this one, on both planners."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.planner.why import why
from fairlane.service.planning import PLANNERS, plan_document, plan_scenario
from fairlane.service.scenario import apply_change, build, check, load, to_mapping

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
FILES = sorted([*HERE.glob("*/*.toml"), *EXAMPLES.glob("*.toml")])
NAMES = [f"{file.parent.name}/{file.stem}" for file in FILES]
each_file = pytest.mark.parametrize("file", FILES, ids=NAMES)


@each_file
@pytest.mark.parametrize("planner", PLANNERS)
def test_plans_as_expected(file: Path, planner: str):
    scenario = load(file)
    assert check(scenario, plan_scenario(scenario, planner)) == []


@each_file
def test_both_planners_give_the_same_document(file: Path):
    scenario = load(file)
    lanes, reference = (
        plan_document(plan_scenario(scenario, planner), scenario.snapshot, scenario.policy)
        for planner in PLANNERS
    )
    assert lanes == reference


@each_file
def test_what_would_start_a_task_does_start_it(file: Path):
    tables = to_mapping(file.read_bytes(), file.name)
    scenario = build(tables, file.name)
    picked = {pick.task for pick in plan_scenario(scenario).picks}
    for task in scenario.tasks:
        if task.status != "queued" or task.id in picked:
            continue
        answer = why(scenario.snapshot, scenario.policy, scenario.now, task.id)
        assert answer.holds, task.id
        for change in answer.would_start_if:
            after = build(apply_change(tables, change.apply), file.name)
            started = [pick.task for pick in plan_scenario(after).picks]
            assert task.id in started, (task.id, change.sentence)


def test_each_preset_has_cases():
    from fairlane import Policy

    assert {file.parent.name for file in FILES} == {*Policy.presets(), "examples"}
    assert {file.stem for file in EXAMPLES.glob("*.toml")} == set(Policy.presets())
