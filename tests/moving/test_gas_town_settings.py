"""A town's settings, agents, pause and rigs, converted: nothing is lost without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlane.agents.contract import agents
from fairlane.model.project import Pause, Project
from fairlane.policy.policy import Policy
from fairlane.service.conversion import operation
from fairlane.settings import Settings
from tests.unit.contexts import TestContext


class Town:
    """A folder with a town's files, and a home that they are converted into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "town"
        self.home = TestContext(folder)

    def put(self, name: str, document: object) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document))

    def convert(self, **settings: object) -> Any:
        self.put("settings/config.json", {"type": "town-settings", "version": 1, **settings})
        return operation.write(self.home.context, "gastown", str(self.folder))

    @property
    def policy(self) -> Policy:
        return Policy.load(self.home.context.policy_file)

    @property
    def settings(self) -> Settings:
        return Settings.load(self.home.context.home / "fairlane.toml")

    def projects(self) -> dict[str, Project]:
        with self.home.context.store.read() as reading:
            return {name: row for name, row in reading.table(Project).items() if name != "default"}

    def pauses(self) -> list[str]:
        with self.home.context.store.read() as reading:
            return [pause.by for pause in reading.table(Pause).values()]


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def clone(folder: Path) -> str:
    (folder / ".git").mkdir(parents=True)
    return str(folder)


@pytest.mark.parametrize("scheduler", [{}, {"max_polecats": -1}, {"max_polecats": 0}, None])
def test_direct_mode_has_no_batch_no_cap_and_many_slots(town: Town, scheduler: object) -> None:
    town.convert(scheduler=scheduler)
    rules = town.policy.capacity
    assert (rules.mode, rules.batch, rules.spawn_delay) == ("direct", None, 0)
    assert town.policy.caps.get("all") is None
    assert (town.settings.worker.slots or 0) >= 1000


def test_slots_of_a_home_are_raised_for_direct_mode(town: Town) -> None:
    (town.home.context.home / "fairlane.toml").write_text("[worker]\nslots = 2\n")
    town.convert()
    assert (town.settings.worker.slots or 0) >= 1000


def test_a_batch_of_nothing_is_the_default_and_said(town: Town) -> None:
    document = town.convert(scheduler={"max_polecats": 3, "batch_size": 0, "spawn_delay": ""})
    assert town.policy.capacity.batch == 1
    assert any("batch_size is 0" in note for note in document["notes"])


def test_resource_limits_are_listed(town: Town) -> None:
    limits = {"resource_limits": {"expensive": 2}}
    document = town.convert(scheduler={"max_polecats": 3, **limits})
    assert document["unknown"] == ["scheduler.resource_limits.expensive"]


@pytest.mark.parametrize(
    ("given", "agent"),
    [
        ({}, "claude"),
        ({"default_agent": ""}, "claude"),
        ({"default_agent": "codex"}, "codex"),
        ({"default_agent": "codex", "role_agents": {"polecat": "gemini"}}, "gemini"),
        ({"default_agent": "amp"}, "amp"),
    ],
)
def test_the_agent_of_polecats_is_kept(town: Town, given: dict[str, Any], agent: str) -> None:
    document = town.convert(**given)
    assert town.settings.agent == agent
    unknown = [note for note in document["notes"] if "is not known here" in note]
    assert len(unknown) == (agent == "amp")


def test_own_agents_of_known_programs_become_agents(town: Town) -> None:
    own = {
        "opus": {
            "command": "claude",
            "args": ["--model", "opus", "--dangerously-skip-permissions"],
        },
        "codex": {"command": "/opt/bin/codex", "args": ["--yolo", "-c", "x=1"]},
        "helper": {"provider": "generic", "command": "aider", "args": ["--yes"]},
        "a.b": {"command": "claude"},
        "odd": 5,
        "plain": {"provider": "gemini", "args": [], "prompt_mode": "arg", "env": {"KEY": "secret"}},
    }
    document = town.convert(default_agent="opus", agents=own)
    made = agents(town.settings)
    assert (made["opus"].parser, made["opus"].pool, made["opus"].model) == (
        "claude", "anthropic", "opus",
    )  # fmt: skip
    assert made["opus"].permissions == "full"
    assert made["codex"].argv[:3] == ("/opt/bin/codex", "-c", "x=1")
    assert made["plain"].parser == "gemini"
    assert "helper" not in made
    assert document["unknown"] == [
        "agents.helper.provider", "agents.helper.command", "agents.helper.args",
        "agents.a.b.command", "agents.odd", "agents.plain.prompt_mode", "agents.plain.env.KEY",
    ]  # fmt: skip
    assert any("Agent helper runs aider" in note for note in document["notes"])
    assert "secret" not in json.dumps(document)


PAUSED = {"paused": True, "paused_by": "mayor", "paused_at": "2026-01-30T11:00:00Z"}


@pytest.mark.parametrize(
    ("now", "legacy", "by"),
    [
        (PAUSED, None, ["mayor"]),
        (None, PAUSED, ["mayor"]),
        ({"paused": False}, PAUSED, []),  # as there: the old file counts where it is alone
        (None, {"paused": False, "paused_at": ""}, []),
    ],
)
def test_a_paused_town_stays_paused(town: Town, now: object, legacy: object, by: list[str]) -> None:
    for name, state in (("scheduler-state.json", now), ("queue-state.json", legacy)):
        if state is not None:
            town.put(f".runtime/{name}", state)
    town.convert()
    assert town.pauses() == by


def test_rigs_keep_their_clones_and_what_they_lack_is_named(town: Town, tmp_path: Path) -> None:
    mayor = clone(town.folder / "web" / "mayor" / "rig")
    own = clone(tmp_path / "elsewhere")
    town.put("mayor/rigs.json", {"version": 1, "rigs": {
        "web": {"git_url": "git@example.com:web.git", "beads": {"prefix": "wb"}, "mood": 1},
        "api": {"local_repo": own, "beads": {"prefix": "ap-"}},
        "bare": {"git_url": "git@example.com:bare.git", "beads": None},
        "town": {"beads": {"prefix": "hq"}},
        "empty": None,
    }})  # fmt: skip
    document = town.convert()
    found = {name: (row.prefix, row.repo) for name, row in town.projects().items()}
    assert found == {
        "web": ("wb-", mayor), "api": ("ap-", own), "bare": (None, None), "empty": (None, None),
    }  # fmt: skip
    notes = "\n".join(document["notes"])
    assert "by its id: bare, empty." in notes
    assert "No clone was found in the town: bare (git@example.com:bare.git), empty." in notes
    assert "Rig town is left out: hq- beads belong to the town itself." in notes
    assert document["unknown"] == ["rigs.json: rigs.*.mood"]
    assert town.convert()["changed"] is False


def test_a_rig_of_its_own_mind_keeps_its_agent_and_prefix(town: Town) -> None:
    town.put("mayor/rigs.json", {"rigs": {"web": {"git_url": "https://ann:key@example.com/w.git"}}})
    town.put("web/config.json", {"type": "rig", "beads": {"prefix": "wb"}})
    town.put(
        "web/settings/config.json", {"type": "rig-settings", "agent": "codex", "theme": {"a": 1}}
    )
    document = town.convert()
    assert (town.projects()["web"].agent, town.projects()["web"].prefix) == ("codex", "wb-")
    assert document["unknown"] == ["RIG/settings/config.json: theme.a"]
    assert "web (https://example.com/w.git)" in "\n".join(document["notes"])


def test_a_rig_whose_name_does_not_fit_gets_one_and_keeps_its_folder(town: Town) -> None:
    repo = clone(town.folder / "café rig" / "mayor" / "rig")
    clone(town.folder.parent / "mayor" / "rig")
    town.put("mayor/rigs.json", {"rigs": {"café rig": {}, "cafe-rig": {}, "..": {}, "../up": {}}})
    answer = town.convert()
    projects = town.projects()
    assert len(projects) == 4
    assert [name for name, row in projects.items() if row.repo] == [
        name for name in projects if name.startswith("cafe-rig-")
    ]
    assert repo in {row.repo for row in projects.values()}
    (note,) = [note for note in answer["notes"] if "The name of a project" in note]
    assert "café rig is cafe-rig-" in note


def test_a_clone_outside_the_town_is_not_taken_through_a_link(town: Town, tmp_path: Path) -> None:
    clone(tmp_path / "outside")
    (town.folder / "web" / "mayor").mkdir(parents=True)
    (town.folder / "web" / "mayor" / "rig").symlink_to(tmp_path / "outside")
    town.put("mayor/rigs.json", {"rigs": {"web": {"beads": {"prefix": "wb"}}}})
    town.convert()
    assert town.projects()["web"].repo is None


@pytest.mark.parametrize(
    ("rigs", "message"),
    [
        (
            {"a": {"beads": {"prefix": "x"}}, "b": {"beads": {"prefix": "x-"}}},
            "prefix 'x-' belongs",
        ),
        ({"a": [1]}, "rigs.a: not a table of keys"),
    ],
)
def test_bad_rigs_change_nothing(town: Town, rigs: object, message: str) -> None:
    town.put("mayor/rigs.json", {"rigs": rigs})
    with pytest.raises(Exception, match=message):
        town.convert()
    assert town.projects() == {}


def test_a_town_without_settings_has_its_defaults(town: Town) -> None:
    town.put("mayor/rigs.json", {"rigs": {"web": {"beads": {"prefix": "wb"}}}})
    document = operation.show("gastown", str(town.folder))
    assert 'capacity.mode = "direct"' in document["policy"]


def test_the_projects_are_read_once_however_many_rigs_there_are(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = town.home.context.store
    reads: list[object] = []
    with store.write() as tx:
        kind = type(tx)
    table = kind.table

    def counted(tx: Any, what: Any) -> Any:
        reads.append(what)
        return table(tx, what)

    monkeypatch.setattr(kind, "table", counted)
    counts = []
    for number in (10, 300):
        rigs = {f"rig{at}": {"beads": {"prefix": f"r{at}"}} for at in range(number)}
        town.put("mayor/rigs.json", {"rigs": rigs})
        reads.clear()
        town.convert()
        counts.append(len(reads))
    assert counts[0] == counts[1]
