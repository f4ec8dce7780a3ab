"""Commands that get notices; webhooks are in tests/attackers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlane.notify.send import send, target_name
from fairlane.settings import NotifyRule
from tests.daemon.world import World

pytestmark = pytest.mark.slow


def told_by(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_command_is_told_of_what_was_parked_a_finished_group_and_an_empty_queue(
    world: World,
) -> None:
    told = world.home / "told"
    script = f'cat >> "{told}"; echo >> "{told}"'
    world.settings(f"[[notify]]\ncommand = ['sh', '-c', '{script}']\n")
    world.policy("retry.max_attempts = 1\n")
    world.add({"id": "a", "command": ["false"]}, {"id": "b", "command": ["true"], "group": "g"})
    world.run()
    found = told_by(told)
    assert {each["event"] for each in found} == {"parked", "group_done", "queue_empty"}
    parked = next(each for each in found if each["event"] == "parked")
    assert parked["task"] == "a"
    world.add({"id": "c", "command": ["true"]})
    world.run()
    numbers = [each["number"] for each in told_by(told)]
    assert len(numbers) == len(set(numbers))  # none came twice


def test_a_target_that_names_them_is_told_of_checks_and_success(world: World) -> None:
    told = world.home / "told"
    script = f'cat >> "{told}"; echo >> "{told}"'
    on = "on = ['done', 'check_failed']"
    world.settings(f"[[notify]]\n{on}\ncommand = ['sh', '-c', '{script}']\n")
    world.policy("retry.max_attempts = 1\n")
    world.add(
        {"id": "a", "command": ["true"], "checks": [["false"]]},
        {"id": "b", "command": ["true"], "checks": [["true"]]},
    )
    world.run()
    found = {each["task"]: each for each in told_by(told)}
    assert {task: each["event"] for task, each in found.items()} == {
        "a": "check_failed", "b": "done",
    }  # fmt: skip
    assert found["a"]["data"]["check"] == "false"  # type: ignore[index]


@pytest.mark.parametrize("text", ["", "text = true\n"])
def test_what_an_agent_wrote_is_sent_where_it_is_asked_for(world: World, text: str) -> None:
    told = world.home / "told"
    script = f'cat >> "{told}"; echo >> "{told}"'
    world.policy("retry.max_attempts = 1\n")
    said = json.dumps({"type": "progress", "text": "I am stuck"})
    target = f"[[notify]]\non = ['parked']\ncommand = ['sh', '-c', '{script}']\n{text}"
    world.settings(f"{target}[agents.own]\nparser = 'demo'\nargv = ['echo', '{said}']\n")
    world.add({"id": "a", "agent": "own", "prompt": "x"})
    world.run()
    (parked,) = told_by(told)
    assert parked.get("answer") == ("I am stuck" if text else None)
    assert ("answer" in parked) is bool(text)


def test_a_command_that_fails_or_is_missing_is_named() -> None:
    missing = NotifyRule(command=("no-such-program",))
    assert send(missing, {"number": 1}, 0) == ("No such file or directory", False)
    assert target_name(missing) == "no-such-program"
    assert send(NotifyRule(command=("false",)), {"number": 1}, 0) == ("exit 1", False)
    slow = NotifyRule(command=("sleep", "1000"))
    assert send(slow, {"number": 1}, 0, 0.2).problem == "it did not end within 0.2 s"
