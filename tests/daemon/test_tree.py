"""A tree of two hundred tasks runs to its end with real processes, in the order of its needs."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from fairlane.service import projects
from tests.acceptance.commands import fairlane
from tests.daemon.world import World

pytestmark = pytest.mark.slow

PROJECTS = ("web", "api", "docs", "ops")
EPICS, PHASES, TASKS = 5, 4, 10
ENV = {
    "FAIRLANE_DEMO_SECONDS": "0",
    "FAIRLANE_DEMO_FAIL": "0",
    "FAIRLANE_DEMO_THROTTLE": "0",
    "FAIRLANE_DEMO_TOKENS": "1000",
}


def tree(draw: random.Random) -> dict[str, Any]:
    """Epics with phases with tasks; each phase waits for what stands before it, here and there."""
    epics: list[dict[str, Any]] = []
    before: list[str] = []
    for epic in range(EPICS):
        phases: list[dict[str, Any]] = []
        last: list[str] = []
        for phase in range(PHASES):
            names = [f"{draw.choice(PROJECTS)}-{epic}.{phase}.{number}" for number in range(TASKS)]
            tasks: list[dict[str, Any]] = [
                {
                    "id": name,
                    "agent": "demo",
                    "needs": draw.sample(last, 2) if last else draw.sample(before, min(1, epic)),
                    "env": ENV,
                }
                for name in names
            ]
            phases.append({"name": f"epic-{epic}-phase-{phase}", "tasks": tasks})
            last = names
        before = last
        epics.append({"name": f"epic-{epic}", "title": f"Epic {epic}", "groups": phases})
    return {"title": "All of it", "groups": epics}


def needs_of(whole: dict[str, Any]) -> dict[str, list[str]]:
    found = {task["id"]: task["needs"] for task in whole.get("tasks", ())}
    for group in whole.get("groups", ()):
        found |= needs_of(group)
    return found


def test_two_hundred_tasks_in_nested_groups_run_in_the_order_of_their_needs(world: World) -> None:
    told = world.home / "told"
    script = f'cat >> "{told}"; echo >> "{told}"'
    world.settings(
        "[worker]\nslots = 16\n"
        f"[[notify]]\ncommand = ['sh', '-c', '{script}']\non = ['group_done']\n"
    )
    world.policy("caps.all = 16\ncaps.\"project:*\" = 'none'\n")
    world.seconds = 250
    with world.context() as context:
        for name in PROJECTS:
            projects.add_project(context, name, {"prefix": f"{name}-"})
    whole = tree(random.Random(7))
    needs = needs_of(whole)
    file = world.home / "tree.json"
    file.write_text(json.dumps(whole), encoding="utf-8")
    added = world.fairlane("group", "add", "release", "--file", str(file))
    assert len(added["tasks"]) == len(needs) == 200
    assert (len(added["groups"]), added["unrouted"]) == (1 + EPICS + EPICS * PHASES, [])

    world.run()
    assert Counter(world.statuses().values()) == {"done": 200}
    with world.context() as context, context.store.read() as reading:
        events = reading.events(limit=100_000)
    done: set[str] = set()
    started: list[str] = []
    for event in events:
        if event.kind == "leased" and event.task:
            assert done.issuperset(needs[event.task]), f"{event.task} started too early"
            started.append(event.task)
        elif event.kind == "succeeded" and event.task:
            done.add(event.task)
    assert sorted(started) == sorted(needs)

    names = [each["name"] for each in added["groups"]]
    ended = [str(event.data["group"]) for event in events if event.kind == "group_done"]
    assert sorted(ended) == sorted(names)
    assert ended[-1] == "release"
    notices = [json.loads(line)["data"]["group"] for line in told.read_text().splitlines()]
    assert notices == ended  # each once, in the same order

    story = world.fairlane("group", "show", "release")["group"]
    assert (story["progress"], story["done"], story["running"]) == ("200 of 200 done", True, [])
    assert (len(story["tree"]), story["holds"], story["parked"]) == (26, [], [])
    assert story["span"]["until"] is not None
    assert story["tokens"] > 200 * 100
    assert story["usd"] > 0
    said = fairlane("--home", world.home, "group", "show", "epic-1").out
    assert said.startswith("epic-1  Epic 1\n  epic-1            ████████████████  40 of 40 done\n")
    assert "    epic-1-phase-3  ████████████████  10 of 10 done\n" in said
    assert " tokens, $" in said


def test_a_recipe_runs_from_its_first_step_to_its_last(world: World) -> None:
    words = [word for name, value in ENV.items() for word in ("--env", f"{name}={value}")]
    added = world.fairlane("add", "Log in", "--recipe", "full", "--agent", "demo", *words)
    world.run()
    with world.context() as context, context.store.read() as reading:
        events = reading.events(limit=1000)
    done = [event.task for event in events if event.kind == "succeeded"]
    assert done == [row["id"] for row in added["tasks"]]
    assert [event.data["group"] for event in events if event.kind == "group_done"] == ["t1"]
