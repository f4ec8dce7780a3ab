"""Templates are tried, and artifacts looked for, when a task is added."""

from __future__ import annotations

import pytest

from fairlane.intake import templates
from fairlane.model.errors import Invalid, Refused
from fairlane.service import projects
from fairlane.service.reports import listing
from tests.unit.contexts import hold_code


@pytest.fixture
def repo(tmp_path, office):
    folder = tmp_path / "repo"
    (folder / "templates").mkdir(parents=True)
    projects.add_project(office.context, "web", {"repo": str(folder)})
    return folder


def test_a_missing_template_is_refused(office, repo):
    (repo / "templates" / "review.md").write_text("Review {prompt}.")
    with pytest.raises(Refused) as refused:
        office.add({"project": "web", "template": "reviw"})
    assert refused.value.message == "there is no template 'reviw'"
    assert refused.value.hint.startswith("Did you mean 'review'? Looked for ")
    assert refused.value.hint.count("reviw.md") == 2


def test_an_unknown_placeholder_is_refused(office, repo):
    (repo / "templates" / "fix.md").write_text("Fix {prompt} in {modul}.")
    record = {"project": "web", "template": "fix", "prompt": "it"}
    with pytest.raises(Refused) as refused:
        office.add(record)
    assert refused.value.message == "template 'fix': unknown placeholder {modul}"
    assert "--var modul=VALUE" in refused.value.hint
    office.add(record | {"vars": {"modul": "core"}})


def test_the_repository_comes_before_the_home_folder(office, repo):
    home = office.context.home / "templates"
    home.mkdir()
    (home / "both.md").write_text("{nothing}")
    (home / "own.md").write_text("{prompt}")
    (repo / "templates" / "both.md").write_text("{prompt}")
    office.add({"project": "web", "template": "both"}, {"project": "web", "template": "own"})
    with pytest.raises(Refused, match="unknown placeholder"):
        office.add({"template": "both"})


def test_the_project_has_a_default_and_none_turns_it_off(office, repo):
    (repo / "templates" / "house.md").write_text("{missing}")
    projects.set_project(office.context, "web", {"template": "house"})
    with pytest.raises(Refused, match="missing"):
        office.add({"project": "web"})
    office.add({"project": "web", "template": "none"})


def test_braces_that_are_not_placeholders_stay():
    text = "Use {prompt}: {{prompt}} { a: 1 } {n} ${x}"
    shown = templates.render(text, {"prompt": "it"}, {"n": "2", "x": "y"})
    assert shown == "Use it: {prompt} { a: 1 } 2 $y"


def test_artifacts_of_a_project_lie_in_its_repository(office, repo):
    (repo / "here.txt").write_text("x")
    office.add({"id": "a", "project": "web", "artifacts": ["here.txt", "out/later.txt"]})
    shown = listing.show(office.context, "a")
    assert shown["task"]["artifacts_missing"] == ["out/later.txt"]
    assert hold_code(shown) == "artifact"
    assert office.lease() == []
    (repo / "out").mkdir()
    (repo / "out" / "later.txt").write_text("x")
    assert [lease["task"] for lease in office.lease()] == ["a"]


def test_artifacts_of_a_child_lie_in_its_parents_folder(office):
    folder = office.context.home / "artifacts" / "p"
    folder.mkdir(parents=True)
    (folder / "spec.md").write_text("x")
    office.add({"id": "p"}, {"id": "c", "parent": "p", "artifacts": ["spec.md", "b.md"]})
    assert listing.show(office.context, "c")["task"]["artifacts_missing"] == ["b.md"]


def test_a_link_does_not_lead_out(office, repo, tmp_path):
    (tmp_path / "secret").write_text("x")
    (repo / "link").symlink_to(tmp_path)
    with pytest.raises(Invalid, match="artifact 'link/secret' leaves its folder through a link"):
        office.add({"project": "web", "artifacts": ["link/secret"]})


def test_a_link_to_itself_keeps_only_its_task_waiting(office, repo):
    office.add({"id": "a", "project": "web", "artifacts": ["out"]}, {"id": "b", "project": "web"})
    (repo / "out").symlink_to("out")
    office.add({"id": "c", "project": "web", "artifacts": ["out"]})
    assert [lease["task"] for lease in office.lease(limit=9)] == ["b"]


def test_artifacts_without_a_folder_are_refused(office):
    with pytest.raises(Refused, match="project default has no repository") as refused:
        office.add({"artifacts": ["a"]})
    assert "fairlane project set default --repo DIR" in refused.value.hint
