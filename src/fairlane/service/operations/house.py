"""House: the operations on projects, groups, pools, workers and the policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlane.service.operations.values import Document

if TYPE_CHECKING:
    from fairlane.service.desk import Desk


def project_list(desk: Desk) -> Document:
    """Every project."""
    from fairlane.service import projects

    return projects.list_projects(desk)


def project_show(desk: Desk, name: str) -> Document:
    """One project."""
    from fairlane.service import projects

    return projects.show_project(desk, name)


def project_add(desk: Desk, name: str, values: Mapping[str, Any] | None = None) -> Document:
    """A new project; one that is there is returned as it is."""
    from fairlane.service import projects

    return projects.add_project(desk, name, values)


def project_set(desk: Desk, name: str, values: Mapping[str, Any]) -> Document:
    """Change a project; null takes a value away."""
    from fairlane.service import projects

    return projects.set_project(desk, name, values)


def project_remove(desk: Desk, name: str) -> Document:
    """Take a project away that has no unfinished task."""
    from fairlane.service import projects

    return projects.remove_project(desk, name)


def group_list(desk: Desk) -> Document:
    """Every group with its progress."""
    from fairlane.service.reports import groups

    return groups.list_groups(desk)


def group_show(desk: Desk, name: str) -> Document:
    """One group: how far it is, and what holds it up."""
    from fairlane.service.reports import groups

    return groups.show_group(desk, name)


def group_add(
    desk: Desk,
    name: str,
    *,
    parent: str | None = None,
    priority: int | None = None,
    title: str | None = None,
    tree: Mapping[str, Any] | None = None,
    project: str | None = None,
    dry_run: bool = False,
) -> Document:
    """A new group; with a tree its tasks and the groups under it too, all or none."""
    from fairlane.service.grouping import keeping, trees

    if tree is None:
        return keeping.add_group(desk, name, parent, priority, title)
    given = {"parent": parent, "priority": priority, "title": title}
    whole = {**tree, **{key: value for key, value in given.items() if value is not None}}
    return trees.add_tree(desk, name, whole, project=project, dry_run=dry_run)


def group_set(desk: Desk, name: str, values: Mapping[str, Any]) -> Document:
    """Change a group's parent, priority or title; null takes it away."""
    from fairlane.service.grouping import keeping

    return keeping.set_group(desk, name, values)


def pool_list(desk: Desk) -> Document:
    """Every pool with its cooldown."""
    from fairlane.service.reports import resources

    return resources.list_pools(desk)


def pool_show(desk: Desk, name: str) -> Document:
    """One pool."""
    from fairlane.service.reports import resources

    return resources.show_pool(desk, name)


def worker_list(desk: Desk) -> Document:
    """Every worker with its slots."""
    from fairlane.service.reports import resources

    return resources.list_workers(desk)


def worker_show(desk: Desk, name: str) -> Document:
    """One worker."""
    from fairlane.service.reports import resources

    return resources.show_worker(desk, name)


def policy_show(desk: Desk) -> Document:
    """The policy in force, each key with where its value came from."""
    from fairlane.service import policies

    return policies.show(desk.policy_file)


def policy_set(desk: Desk, changes: Mapping[str, Any]) -> Document:
    """Change keys of the policy, such as {"caps.all": 8}; all of them, or none."""
    from fairlane.service import policies

    words = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in changes.items()]
    return policies.change(desk.policy_file, words)
