"""What an attempt adds stays within its parent and the policy, however it asks."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext, suppress
from typing import Any

import pytest

from fairlane.intake.fields import READERS
from fairlane.model.errors import FairlaneError, Forbidden, NotFound
from fairlane.service.attempt_rights import BOUNDED, FREE, answer_attempt
from fairlane.service.operations.table import OPERATIONS
from tests.unit.contexts import TestContext

PARENT = {
    "id": "own", "prompt": "x", "project": "web", "agent": "codex", "priority": 50,
    "labels": ["gpu"], "base": "release", "merge": "merge", "timeout": "1h", "max_attempts": 2,
}  # fmt: skip


@pytest.fixture
def world(tmp_path) -> TestContext:
    """Task `own` of project web is in flight; `foreign` is a task of another project."""
    found = TestContext(tmp_path, {"pools": {"admin": {"env": {"KEY": "secret"}}}})
    for name in ("web", "ops"):
        answer(found, "project_add", name=name, values={})
    found.add(PARENT, {"id": "foreign", "prompt": "x", "project": "ops"})
    found.add({"id": "near", "prompt": "x", "project": "web"})
    (taken,) = [
        lease
        for lease in answer(found, "lease", worker="box", labels=["gpu"])["leases"]
        if lease["task"] == "own"
    ]
    found.lease_id = taken["lease"]  # type: ignore[attr-defined]
    return found


def answer(world: TestContext, name: str, /, **arguments: object) -> Any:
    from fairlane.service.operations.call import answer as plain

    return plain(world.context, name, **arguments)


def add(world: TestContext, *tasks: dict[str, Any], **arguments: object) -> Any:
    """Add with the token of the attempt."""
    given = {"tasks": list(tasks), **arguments}
    return answer_attempt(world.context, world.lease_id, "add", given)  # type: ignore[attr-defined]


def child(world: TestContext, **fields: object) -> Any:
    """The task that the attempt adds with these fields."""
    added = add(world, {"prompt": "y", **fields})["tasks"][0]
    return answer(world, "show", task=added["id"])["task"]


def test_a_child_has_what_its_parent_has(world):
    task = child(world)
    assert (task["parent"], task["project"], task["agent"]) == ("own", "web", "codex")
    assert (task["labels"], task["base"], task["merge"]) == (["gpu"], "release", "keep")
    assert child(world, merge="merge", base="fairlane/own", priority=60)["priority"] == 60
    assert child(world, parent="near")["parent"] == "own", "whatever it says"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": ["sh", "-c", "id"]}, "command: an attempt cannot give it"),
        ({"agent": "shell", "command": ["id"]}, "command: an attempt cannot give it"),
        ({"env": {"LD_PRELOAD": "/tmp/x.so"}}, "env: an attempt cannot give it"),
        ({"agent": "claude"}, "agent: claude is not the agent of its parent"),
        ({"agent": "shell"}, "agent: shell is not the agent of its parent"),
        ({"project": "ops"}, "project: an attempt adds to its own project, web"),
        ({"pool": "admin"}, "pool: admin is not the pool of its parent"),
        ({"base": "main"}, "base: main is neither the base nor the branch of its parent"),
        ({"base": "fairlane/near"}, "base: fairlane/near is neither"),
        ({"merge": "pr"}, "merge: its parent has merge = merge"),
        ({"labels": ["gpu", "deploys"]}, "labels: its parent does not have deploys"),
        ({"priority": 1}, "priority: that of its parent is 50"),
        ({"timeout": "2h"}, "timeout: that of its parent is shorter"),
        ({"max_attempts": 99}, "max_attempts: its parent has 2"),
        ({"needs": ["foreign"]}, "needs: foreign is a task of another project"),
        ({"id": "near"}, "id: near is the id of another task"),
        ({"id": "own"}, "id: own is the id of another task"),
    ],
)
def test_what_reaches_beyond_the_parent_is_refused_by_name(world, fields, words):
    before = answer(world, "list")["tasks"]
    for given in ({"tasks": [{"prompt": "y"}, {"prompt": "y", **fields}]},
                  {"tasks": [{"prompt": "y"}], "defaults": fields}):  # fmt: skip
        with pytest.raises(Forbidden) as refused:
            answer_attempt(world.context, world.lease_id, "add", given)
        assert words in refused.value.message
        assert "attempt.may_add" in refused.value.hint
        assert refused.value.error_code == "may_add"
    assert answer(world, "list")["tasks"] == before, "all or none"


def test_the_policy_key_is_named_with_its_value(world):
    with pytest.raises(Forbidden, match="command") as refused:
        child(world, command=["id"])
    assert "attempt.may_add.command is false" in refused.value.hint
    with pytest.raises(Forbidden) as refused:
        child(world, agent="claude")
    assert "attempt.may_add.agents is same" in refused.value.hint


def test_the_policy_allows_more(world):
    world.policy(
        "[attempt.may_add]\nagents = ['claude']\ncommand = true\nenv = true\n[caps]\nall = 4\n"
    )
    assert child(world, agent="claude")["agent"] == "claude"
    assert child(world)["agent"] == "codex", "its own counts among them"
    assert child(world, command=["true"])["agent"] == "shell"
    assert child(world, env={"DEBUG": "1"})["agent"] == "codex"
    with pytest.raises(Forbidden, match="agent: gemini"):
        child(world, agent="gemini")
    world.policy("[attempt.may_add]\nagents = 'any'\n")
    assert child(world, agent="gemini")["agent"] == "gemini"
    with pytest.raises(Forbidden, match="command"):
        child(world, command=["true"])


@pytest.mark.parametrize(
    "wrong", ["agents = 3", "agents = 'all'", "command = 'yes'", "argv = true"]
)
def test_a_wrong_setting_is_refused(world, wrong):
    world.policy(f"[attempt.may_add]\n{wrong}\n")
    with pytest.raises(FairlaneError, match=r"policy\.toml:2: .*attempt\.may_add"):
        world.context.policy()


def test_the_steps_of_a_recipe_are_children_too(world, tmp_path):
    (tmp_path / "recipes").mkdir()
    step = '[[step]]\nname = "a"\nprompt = "{prompt}"\n'
    (tmp_path / "recipes" / "mine.toml").write_text(step)
    added = add(world, {"prompt": "y"}, recipe="mine")["tasks"][0]["id"]
    assert answer(world, "show", task=added)["task"]["parent"] == "own"
    (tmp_path / "recipes" / "mine.toml").write_text(step + 'agent = "claude"\n')
    with pytest.raises(Forbidden, match="step a: agent: claude"):
        add(world, {"prompt": "y"}, recipe="mine")


@pytest.mark.parametrize("argument", ["again", "force"])
def test_nothing_but_new_tasks(world, argument):
    with pytest.raises(Forbidden, match=f"{argument}: an attempt adds new tasks only"):
        add(world, {"id": "own-1", "prompt": "y"}, **{argument: True})


def test_the_same_child_again_is_answered(world):
    for created in (True, False):
        assert add(world, {"id": "own-1", "prompt": "y"})["tasks"][0]["created"] is created


def test_a_command_gives_the_work_on_to_the_agent_of_its_project(world):
    answer(world, "project_set", name="web", values={"agent": "gemini"})
    world.add({"id": "script", "project": "web", "command": ["true"], "labels": ["gpu"]})
    leases = answer(world, "lease", worker="box", labels=["gpu"])["leases"]
    world.lease_id = next(each["lease"] for each in leases if each["task"] == "script")
    assert child(world)["agent"] == "gemini"
    with pytest.raises(Forbidden, match="agent: claude"):
        child(world, agent="claude")


def test_with_the_lease_it_ends(world):
    world.finish(world.lease_id)
    for name, arguments in (
        ("add", {"tasks": [{"prompt": "y"}]}), ("show", {"task": "own"}), ("why", {"task": "own"}),
    ):  # fmt: skip
        with pytest.raises(Forbidden) as refused:
            answer_attempt(world.context, world.lease_id, name, arguments)
        assert refused.value.error_code == "lease_ended"
    with pytest.raises(Forbidden) as refused:
        answer_attempt(world.context, "L999", "add", {"tasks": [{"prompt": "y"}]})
    assert refused.value.error_code == "unknown_lease"


def test_a_lease_that_ends_between_the_look_and_the_write_adds_nothing(world):
    acting = dataclasses.replace(world.context, lease=world.lease_id)
    world.finish(world.lease_id)
    from fairlane.service.tasks import add as add_now

    with pytest.raises(Forbidden, match="has ended"):
        add_now(acting, [{"prompt": "y"}])


def test_every_field_is_free_or_bounded():
    assert set(READERS) == FREE | BOUNDED, "a new field is refused until somebody decides"
    assert not FREE & BOUNDED


#: What an attempt may call, and with what; everything else is refused.
GRANTED: dict[str, dict[str, object]] = {
    "heartbeat": {"lease": "own lease"}, "report": {"lease": "own lease"},
    "complete": {"lease": "own lease"}, "release": {"lease": "own lease"},
    "show": {"task": "own"}, "why": {"task": "own"}, "logs": {"task": "own"},
    "transcript": {"task": "own"}, "diff": {"task": "own"},
    "check_log": {"task": "own", "name": "make test"},
    "add": {"tasks": [{"prompt": "y"}]},
}  # fmt: skip


#: What it may ask for has not come into being.
NOTHING_YET = ("diff", "check_log")


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_decided(world, name):
    operation = OPERATIONS[name]
    if name not in GRANTED:
        assert operation.attempt in ("", "look")
        assert operation.attempt == "" or operation.reads, "what decides is never to be looked at"
        with pytest.raises(Forbidden) as refused:
            answer_attempt(world.context, world.lease_id, name, dict(operation.example))
        assert refused.value.error_code == "forbidden"
        return
    own = {
        key: world.lease_id if value == "own lease" else value
        for key, value in GRANTED[name].items()
    }
    with suppress(NotFound) if name in NOTHING_YET else nullcontext():
        assert answer_attempt(world.context, world.lease_id, name, own)
    others = {"lease": "L999", "task": "near"}
    for key in own.keys() & others.keys():
        with pytest.raises(Forbidden):
            answer_attempt(world.context, world.lease_id, name, own | {key: others[key]})
