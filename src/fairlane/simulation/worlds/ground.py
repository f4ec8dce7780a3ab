"""Ground: what is there before anybody adds work: agents, projects, groups, accounts."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane.engine.context import Context
from fairlane.intake.routing import DEFAULT_PROJECT
from fairlane.model.errors import Invalid
from fairlane.model.project import Group
from fairlane.model.record import changed, dataclass, field
from fairlane.service import groups
from fairlane.service.projects import place_projects
from fairlane.settings import AgentSettings
from fairlane.simulation.provider import Limits

#: Most tasks of one simulation.
TASKS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Ground:
    """The values of projects and groups as `fairlane project set` and `group set` take them."""

    agent: str | None = None  # of tasks whose project names none
    agents: Mapping[str, AgentSettings] = field(default_factory=dict)
    projects: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    limits: Mapping[str, Limits] = field(default_factory=dict)  # by pool

    def prepare(self, context: Context) -> None:
        """Put it in place."""
        settings = context.settings
        context.settings = changed(
            settings, agent=self.agent or settings.agent, agents={**settings.agents, **self.agents}
        )
        with context.store.write() as tx:
            place_projects(context, tx, self.projects)
            for name, values in self.groups.items():
                tx.put(groups.joined(tx.table(Group), name, groups.read(name, values)))

    def agent_of(self, project: str) -> str | None:
        """The agent of a project's tasks that name none; None: the usual one."""
        own = self.projects.get(project, {}).get("agent")
        return self.agent if own is None else str(own)

    def with_default(self) -> Ground:
        """The same, with the project of tasks that name none."""
        return changed(self, projects={DEFAULT_PROJECT: {}, **self.projects})


def too_many(count: int) -> Invalid:
    """More tasks than one simulation takes."""
    hint = f"Use at most {TASKS_MAX:,}: fewer days, lower rates."
    return Invalid(f"{count:,} tasks are too many", hint)
