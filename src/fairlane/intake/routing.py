"""Routing: whose task it is, and what follows from that: agent, pool, workspace, template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane.intake import artifacts, templates
from fairlane.model.errors import NotFound, Refused, did_you_mean
from fairlane.model.project import Group, Project
from fairlane.model.shipped import agent_of
from fairlane.settings import Settings

DEFAULT_PROJECT = "default"


@dataclass(slots=True)
class Router:
    """Completes what callers leave open; the projects and groups are read once a call."""

    projects: Mapping[str, Project]
    groups: dict[str, Group]
    settings: Settings
    home: Path
    force: bool = False  # an id may begin with another project's prefix
    new_groups: list[Group] = field(default_factory=list)
    _prefixes: dict[str, str] = field(default_factory=dict)  # prefix -> project
    _defaults: dict[tuple[str, bool], dict[str, Any]] = field(default_factory=dict)
    _templates: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._prefixes = {each.prefix: each.name for each in self.projects.values() if each.prefix}

    def complete(self, values: dict[str, Any], named: bool = True) -> dict[str, Any]:
        """The values with everything that follows from them. `named`: the caller gave the id."""
        if named and self._prefixes:
            self._route(values)
        defaults = self._defaults_of(values.get("project", DEFAULT_PROJECT), "command" in values)
        whole = defaults | values
        if "agent" in values and "pool" not in values:
            whole["pool"] = self.settings.agent_pool(values["agent"])
        if "group" in values:
            self._join(whole, "priority" in values)
        if "workspace" in values:
            self._check_workspace(whole)
        if whole["template"] is not None:
            self._try_template(whole)
        if "artifacts" in values:
            self._look_for_artifacts(whole)
        return whole

    def project(self, name: str) -> Project:
        """A known project."""
        found = self.projects.get(name)
        if found is None:
            near = did_you_mean(name, self.projects)
            hint = f"{near} To add it: fairlane project add {name}."
            raise NotFound(f"there is no project {name!r}", hint, code="unknown_project")
        return found

    @property
    def has_prefixes(self) -> bool:
        """Whether ids say whose they are."""
        return bool(self._prefixes)

    def owner(self, task: str) -> str | None:
        """The project whose prefix an id begins with; of several the longest prefix."""
        fits = [prefix for prefix in self._prefixes if task.startswith(prefix)]
        return self._prefixes[max(fits, key=len)] if fits else None

    def _route(self, values: dict[str, Any]) -> None:
        owner = self.owner(values["id"])
        project = values.setdefault("project", owner or DEFAULT_PROJECT)
        if owner is not None and owner != project and not self.force:
            prefix = self.projects[owner].prefix
            raise Refused(
                f"{values['id']} begins with {prefix!r}, the prefix of project {owner}; "
                f"it cannot be added to {project}",
                f"Add it to {owner}, choose another id, or use --force.",
                code="foreign_prefix",
            )

    def _defaults_of(self, name: str, has_command: bool) -> dict[str, Any]:
        """What a task of this project has unless it says otherwise."""
        found = self._defaults.get((name, has_command))
        if found is None:
            project = self.project(name)
            if project.status == "archived":
                hint = f"Open it again: fairlane project set {name} --status active."
                raise Refused(f"project {name} is archived", hint, code="archived")
            agent = agent_of(None, project.agent, self.settings.agent, has_command)
            found = {
                "project": name,
                "agent": agent,
                "pool": self.settings.agent_pool(agent),
                "template": project.template,
            }
            self._defaults[name, has_command] = found
        return found

    def _join(self, whole: dict[str, Any], has_priority: bool) -> None:
        """Its group, made on first use; the group's priority unless it has its own."""
        name = whole["group"]
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = Group(name)
            self.new_groups.append(group)
        priority = None if has_priority else group_priority(self.groups, name)
        if priority is not None:
            whole["priority"] = priority

    def _check_workspace(self, whole: dict[str, Any]) -> None:
        project = self.project(whole["project"])
        name, declared = whole["workspace"], project.workspaces
        if declared is not None and name not in declared:
            near = did_you_mean(name, declared)
            message = f"project {project.name} has no workspace {name!r}"
            raise NotFound(message, near, code="unknown_workspace")

    def _try_template(self, whole: dict[str, Any]) -> None:
        """A missing template or an unknown placeholder is refused now, not at the start."""
        name = whole["template"]
        if name == templates.NONE:
            return
        place = (whole["project"], name)
        text = self._templates.get(place)
        if text is None:
            text = templates.find(name, self.project(whole["project"]), self.home)
            self._templates[place] = text
        templates.check(name, text, whole.get("vars", {}))

    def _look_for_artifacts(self, whole: dict[str, Any]) -> None:
        project = self.project(whole["project"])
        parent = whole.get("parent")
        absent = artifacts.missing(whole["artifacts"], self.home, parent, project)
        whole["artifacts_missing"] = absent


def group_priority(groups: Mapping[str, Group], name: str) -> int | None:
    """The priority of a group: its own, else that of the nearest group above it that has one."""
    above: str | None = name
    seen: set[str] = set()
    while above is not None and above in groups and above not in seen:
        seen.add(above)
        group = groups[above]
        if group.priority is not None:
            return group.priority
        above = group.parent
    return None
