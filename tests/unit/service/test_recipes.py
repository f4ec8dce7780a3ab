"""Recipes: one prompt becomes a chain of tasks; what a recipe may say, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fairlane.cli.queue.add import RECIPES
from fairlane.intake import recipes
from fairlane.model.errors import FairlaneError, Invalid
from fairlane.model.project import Group
from fairlane.service import projects, tasks
from fairlane.service.groups import add_group, add_recipe
from tests.acceptance.commands import ROOT


def add(office, recipe: str, **given: Any) -> list[str]:
    found = add_recipe(office.context, recipe, [{"prompt": "Log in with a passkey"} | given])
    return [row["id"] for row in found["tasks"]]


def task(office, name: str):
    with office.context.store.read() as reading:
        return reading.task(name)


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")


def test_full_is_research_plan_implement_review(office):
    names = add(office, "full", priority=20)
    assert names == ["t1-research", "t1-plan", "t1-implement", "t1-review"]
    steps = [task(office, name) for name in names]
    assert [step.kind for step in steps] == ["research", "plan", "implement", "review"]
    assert [step.needs for step in steps] == [(), *((name,) for name in names[:-1])]
    assert {(step.group, step.priority) for step in steps} == {("t1", 20)}
    assert steps[0].title == "research: Log in with a passkey"
    assert steps[0].meta == {"recipe": "full", "step": "research"}
    folder = office.context.home / "artifacts"
    assert f"{folder}/t1-research/research.md" in steps[1].prompt
    assert "branch fairlane/t1-implement," in steps[3].prompt
    assert all("Log in with a passkey" in step.prompt for step in steps)
    with office.context.store.read() as reading:
        assert reading.table(Group)["t1"].title == "Log in with a passkey"
    assert add(office, "fix") == ["t2-implement", "t2-review"]


def test_an_id_of_its_own_is_known_again(office):
    assert add(office, "fix", id="login") == ["login-implement", "login-review"]
    again = add_recipe(office.context, "fix", [{"id": "login", "prompt": "Something else"}])
    assert [row["created"] for row in again["tasks"]] == [False, False]
    assert "passkey" in task(office, "login-implement").prompt


def test_what_is_given_reaches_every_step_and_needs_the_first_ones(office):
    office.add({"id": "before"}, {"id": "t1"})
    add_group(office.context, "epic")
    names = add(office, "best-of-two", group="epic", needs=["before"], agent="codex")
    assert names == ["t2-first", "t2-second", "t2-choose"]  # t1 is taken
    assert [task(office, name).needs for name in names] == [
        ("before",), ("before",), ("t2-first", "t2-second"),
    ]  # fmt: skip
    assert {(task(office, n).group, task(office, n).agent) for n in names} == {("epic", "codex")}


def test_a_dry_run_leaves_no_trace(office):
    dry = add_recipe(office.context, "full", [{"prompt": "x"}], dry_run=True)
    assert (dry.pop("dry_run"), office.count()) == (True, 0)
    assert add_recipe(office.context, "full", [{"prompt": "x"}]) == dry
    assert (dry["recipe"], dry["group"]) == ("full", "t1")


def test_the_homes_recipe_goes_before_the_repositorys_and_that_before_ours(office, tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    projects.add_project(office.context, "web", {"repo": str(repo), "prefix": "web-"})
    step = '[[step]]\nname = "{}"\nprompt = "{{prompt}}"\n'
    write(repo / ".fairlane" / "recipes", "fix", step.format("there"))
    assert add(office, "fix", project="web") == ["t1-there"]
    assert add(office, "fix", id="web-1") == ["web-1-there"]
    assert add(office, "fix") == ["t2-implement", "t2-review"]
    write(office.context.home / "recipes", "fix", step.format("here"))
    assert add(office, "fix", project="web") == ["t3-here"]


STEP = '[[step]]\nname = "a"\nprompt = "{prompt}"\n'


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("step = [", "recipe r: not TOML", ""),
        ('about = "x"', "recipe r has no step", ""),
        ("stop = 1\n" + STEP, "recipe r: unknown key 'stop'", "Did you mean 'step'?"),
        (STEP + "prio = 1", "recipe r, step a: unknown key 'prio'", "Did you mean 'priority'?"),
        (STEP + "priority = 'x'", "step a: priority: not a whole number", ""),
        (STEP + STEP, "step a: its name appears twice", ""),
        (STEP + "needs = ['b']", "step a: needs 'b', which is no step before it", "The first"),
        ('[[step]]\nname = "a"', "step a: not text: None", ""),
        ('[[step]]\nprompt = "x"', "step 1: not a step name: None", ""),
        (STEP.replace("prompt}", "promt}"), "unknown placeholder {promt}", "Did you mean 'prompt'"),
        (STEP.replace("{prompt}", "{previous}"), "unknown placeholder {previous}", ""),
        (
            STEP + STEP.replace('"a"', '"b"').replace("{prompt}", "{a.brunch}"),
            "step b: unknown placeholder {a.brunch}",
            "Did you mean 'a.branch'?",
        ),
    ],
)
def test_a_bad_recipe_is_refused_by_name(office, text, message, hint):
    write(office.context.home / "recipes", "r", text)
    with pytest.raises(Invalid) as refused:
        add(office, "r")
    assert message in refused.value.message
    assert refused.value.hint.startswith(hint)
    assert office.count() == 0


def test_placeholders(office):
    text = (
        STEP
        + '[[step]]\nname = "b"\nneeds = []\n'
        + 'prompt = "{{keep}} {title} {id} {previous} {previous.branch} {a.id}: {prompt}"\n'
    )
    write(office.context.home / "recipes", "r", text)
    add(office, "r", id="x", prompt="Use {braces}\nand more", title="T")
    assert task(office, "x-b").prompt == (
        "{keep} T x-b x-a fairlane/x-a x-a: Use {braces}\nand more"
    )


@pytest.mark.parametrize(
    ("recipe", "given", "message", "hint"),
    [
        ("ful", {}, "there is no recipe 'ful'", "Did you mean 'full'?"),
        ("../x", {}, "not a recipe name: '../x'", ""),
        ("full", {"command": ["make"]}, "a recipe gives each step its prompt", ""),
        ("full", {"prompt": " "}, "a recipe needs a prompt", "Write it: fairlane add"),
        ("full", {"prio": 3}, "step research: unknown field 'prio'", "Did you mean"),
        ("full", {"project": "none"}, "step research: there is no project 'none'", ""),
    ],
)
def test_what_does_not_fit_changes_nothing(office, recipe, given, message, hint):
    with pytest.raises(FairlaneError) as refused:
        add(office, recipe, **given)
    assert message in refused.value.message
    assert refused.value.hint.startswith(hint)
    assert office.count() == 0


def test_a_recipe_is_for_one_prompt(office):
    with pytest.raises(Invalid, match="a recipe is for one prompt, not 2"):
        tasks.add(office.context, [{"prompt": "a"}, {"prompt": "b"}], recipe="fix")


def test_what_a_caller_says_beside_the_prompt_counts_too(office):
    projects.add_project(office.context, "web")
    told = tasks.add(
        office.context, [{"prompt": "a"}], recipe="fix", defaults={"project": "web"}, group="g"
    )
    assert told.get("group") == "g"
    assert {task(office, row["id"]).project for row in told["tasks"]} == {"web"}
    assert {task(office, row["id"]).group for row in told["tasks"]} == {"g"}


def test_the_help_names_those_that_are_shipped():
    assert ", ".join(recipes.shipped()) == RECIPES
    assert all(recipes.shipped().values())


def test_the_document_shows_what_is_there():
    text = (ROOT / "docs" / "groups.md").read_text(encoding="utf-8")
    for name, about in recipes.shipped().items():
        assert f"| `{name}` | {about} |" in text
    [example] = [
        block for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL) if "[[step]]" in block
    ]
    assert [step.needs for step in recipes.parse("r", example).steps] == [
        (),
        ("write",),
        ("write",),
    ]
    [tree] = [
        block
        for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL)
        if "[[groups]]" in block
    ]
    assert tree in (ROOT / "examples" / "groups" / "release.toml").read_text(encoding="utf-8")
