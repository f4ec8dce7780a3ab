"""Routing: whose task it is, and what follows from that: agent, pool, workspace, template."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from fairlane.intake import templates
from fairlane.intake.fields import TaskValues
from fairlane.model.errors import Invalid, NotFound, Refused, did_you_mean
from fairlane.model.project import Group, Project, ancestry
from fairlane.model.record import dataclass, field
from fairlane.model.task import agent_of
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
    _defaults: dict[tuple[str, bool], TaskValues] = field(default_factory=dict)
    _templates: dict[tuple[str, str], str] = field(default_factory=dict)
    #: Project, merge and base that were looked at.
    _branches: set[tuple[str, str, str | None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._prefixes = {
            known.prefix: known.name for known in self.projects.values() if known.prefix
        }

    def complete(self, values: TaskValues, named: bool = True) -> TaskValues:
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
        self._try_template(whole)
        if "artifacts" in values:
            self._look_for_artifacts(whole)
        return whole

    def check_branch(self, values: TaskValues) -> None:
        """A base that is not there, or a merge that cannot be, is refused now, not after the work.

        Only files are read: a repository that cannot be read is left to the start of the task.
        """
        merge, base = values.get("merge", "keep"), values.get("base")
        if merge == "keep" and base is None:
            return
        asked = (values["project"], merge, base)
        if asked in self._branches:
            return
        self._branches.add(asked)
        project = self.project(values["project"])
        refuse_without_pr(project, merge)
        if project.repo:
            from fairlane.workspaces import look

            folder = Path(project.repo).expanduser()
            look.refuse_base(folder, base or project.base, merge, f"a task of {project.name}")

    def project(self, name: str) -> Project:
        """A known project."""
        known = self.projects.get(name)
        if known is None:
            near = did_you_mean(name, self.projects)
            hint = f"{near} To add it: fairlane project add {name}."
            raise NotFound(f"there is no project {name!r}", hint, code="unknown_project")
        return known

    @property
    def has_prefixes(self) -> bool:
        """Whether any project has a prefix for ids."""
        return bool(self._prefixes)

    def owner(self, task: str) -> str | None:
        """The project whose prefix an id begins with; of several the longest prefix."""
        fits = [prefix for prefix in self._prefixes if task.startswith(prefix)]
        return self._prefixes[max(fits, key=len)] if fits else None

    def _route(self, values: TaskValues) -> None:
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

    def _defaults_of(self, name: str, has_command: bool) -> TaskValues:
        """The default values of a task of this project."""
        values = self._defaults.get((name, has_command))
        if values is None:
            project = self.project(name)
            if project.status == "archived":
                hint = f"Open it again: fairlane project set {name} --status active."
                raise Refused(f"project {name} is archived", hint, code="archived")
            agent = agent_of(None, project.agent, self.settings.agent, has_command)
            values = {
                "project": name,
                "agent": agent,
                "pool": self.settings.agent_pool(agent),
                "template": project.template,
                "merge": project.merge or "keep",
            }
            self._defaults[name, has_command] = values
        return values

    def _join(self, whole: TaskValues, has_priority: bool) -> None:
        """Its group, made on first use; the group's priority unless it has its own."""
        name = whole["group"]
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = Group(name)
            self.new_groups.append(group)
        priority = None if has_priority else group_priority(self.groups, name)
        if priority is not None:
            whole["priority"] = priority

    def _check_workspace(self, whole: TaskValues) -> None:
        project = self.project(whole["project"])
        name, declared = whole["workspace"], project.workspaces
        if declared is not None and name not in declared:
            near = did_you_mean(name, declared)
            message = f"project {project.name} has no workspace {name!r}"
            raise NotFound(message, near, code="unknown_workspace")

    def _try_template(self, whole: TaskValues) -> None:
        """A missing template or an unknown placeholder is refused now, not at the start."""
        name = whole["template"]
        if name is None or name == templates.NONE:
            return
        place = (whole["project"], name)
        text = self._templates.get(place)
        if text is None:
            text = templates.find(name, self.project(whole["project"]), self.home)
            self._templates[place] = text
        templates.check(name, text, whole.get("vars", {}))

    def _look_for_artifacts(self, whole: TaskValues) -> None:
        project = self.project(whole["project"])
        parent = whole.get("parent")
        absent = missing_artifacts(whole["artifacts"], self.home, parent, project)
        whole["artifacts_missing"] = absent


def refuse_without_pr(project: Project, merge: str | None) -> None:
    """A pull request needs the project's command that opens it."""
    if merge == "pr" and not project.pr:
        hint = f'Give it one: fairlane project set {project.name} --pr "gh pr create --fill".'
        message = f"project {project.name} has no command for pull requests"
        raise Refused(message, hint, code="no_pr")


def group_priority(groups: Mapping[str, Group], name: str) -> int | None:
    """The priority of a group: its own, else that of the nearest group above it that has one."""
    line = ancestry(name, lambda group: groups[group].parent if group in groups else None)
    own = (groups[group].priority for group in line if group in groups)
    return next((priority for priority in own if priority is not None), None)


def missing_artifacts(
    paths: Iterable[str], home: Path, parent: str | None, project: Project
) -> tuple[str, ...]:
    """Those that do not exist now; one that leaves its folder through a link is refused."""
    repo = Path(project.repo).expanduser() if project.repo else None
    folder = repo if parent is None else home / "artifacts" / parent
    absent = []
    for path in paths:
        if artifact_exists(folder, path):
            continue
        if not os.path.isabs(path):  # noqa: PTH117 - it is kept as text
            _check_inside(folder, path, project)
        absent.append(path)
    return tuple(absent)


def _check_inside(folder: Path | None, path: str, project: Project) -> None:
    if folder is None:
        raise Refused(
            f"artifacts have no folder: project {project.name} has no repository",
            f"Name a parent, or set one: fairlane project set {project.name} --repo DIR.",
        )
    target = _in_folder(folder, path)
    if not target.is_relative_to(os.path.realpath(folder)):
        raise Invalid(f"artifact {path!r} leaves its folder through a link to {target}")


def artifact_exists(folder: Path | None, name: str) -> bool:
    """Whether an artifact is there: in its folder once links are followed.

    An absolute path is looked for as it is. Callers cannot give one; a conversion that people run
    can, because another scheduler keeps its artifacts elsewhere.
    """
    if os.path.isabs(name):  # noqa: PTH117 - it is kept as text
        return os.path.exists(name)  # noqa: PTH110 - false where it may not be looked at
    if folder is None:
        return False
    path = _in_folder(folder, name)
    is_inside = path.is_relative_to(os.path.realpath(folder))
    return is_inside and os.path.exists(path)  # noqa: PTH110 - false where it may not be looked at


def _in_folder(folder: Path, name: str) -> Path:
    """Where a path leads; a link that leads to itself is where it is, and does not exist."""
    return Path(os.path.realpath(folder / name))
