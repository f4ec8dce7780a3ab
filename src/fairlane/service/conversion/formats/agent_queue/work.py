"""agent-queue's tasks and ledger, row by row."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane.lifecycle.usage import percentile70
from fairlane.model.errors import Invalid
from fairlane.model.task import SHIPPED, Status
from fairlane.model.values import take
from fairlane.service.conversion.base import Brought, Converted, Spent, count, first_line
from fairlane.service.conversion.formats.agent_queue.database import Database, Row, instant
from fairlane.service.conversion.formats.agent_queue.folders import Folders

#: What is over, what goes on by itself, and what a person paused; everything else needs a look.
_STATUS = {
    "COMPLETED": Status.DONE,
    **dict.fromkeys(("DEFINED", "READY", "ASSIGNED", "IN_PROGRESS", "PAUSED"), Status.QUEUED),
}
_BEGUN = ("ASSIGNED", "IN_PROGRESS")
#: Where a task that waits for a person says why, in databases of different ages.
_QUESTIONS = ("question", "pending_question", "agent_question", "pr_url")
_TASK_COLUMNS = (
    "id", "project_id", "parent_task_id", "title", "description", "priority", "status",
    "retry_count", "max_retries", "preferred_workspace_id", "agent_type", "branch_name",
    "created_at", "updated_at", "resume_after", "credit_weight", "max_concurrent_agents",
)  # fmt: skip
#: The kinds of dependency that a task waits for; an older database has no other.
_WAITED_FOR = (None, "blocks", "waits-for")

_LEDGER = (
    "The ledger's tokens count for their projects at the time of each entry, as output tokens, so "
    "shares continue where they were. The estimate for an attempt is learned from the entries."
)
_RESTARTED = (
    "Tasks that were assigned or in progress are queued and start again, so stop agent-queue "
    "first. If the project's repository has the task's branch, the work continues from there."
)
_PAUSED = (
    "A paused task with a resume time starts at that time; any other stays paused until "
    "`fairlane resume task:ID`."
)
_PARKED = (
    "Tasks that wait for an answer or an approval, failed or are blocked are parked with that "
    "reason. `fairlane retry ID` queues one again."
)


class Work:
    """Tasks and what they used; a row that cannot be brought over is left out by name."""

    def __init__(
        self, database: Database, folders: Mapping[str, Folders], converted: Converted
    ) -> None:
        self.database, self.folders, self.converted = database, folders, converted
        self.ids = {row.get("id") for _, row in database.rows("tasks")}
        self.agents: dict[object, str | None] = {}  # task -> who runs it
        self.odd = database.odd_columns("tasks", _TASK_COLUMNS)
        self.more = _more(database)

    def read(self) -> None:
        """Every task, then the ledger."""
        self.converted.unknown += [f"tasks.{name} (kept in meta)" for name in self.odd]
        converted, statuses = self.converted, set[str]()
        needs = self._needs()
        for where, row in self.database.rows("tasks"):
            try:
                converted.tasks.append(self._task(row, needs.get(row.get("id"), []), where))
            except Invalid as error:
                converted.skip(row.get("id", "?"), error.message, where)
            statuses.add(_word(row))
        self._ledger()
        notes = {
            _LEDGER: bool(converted.spent),
            _RESTARTED: not statuses.isdisjoint(_BEGUN),
            _PAUSED: "PAUSED" in statuses,
            _PARKED: any(task.status is Status.PARKED for task in converted.tasks),
        }
        converted.notes += [text for text, holds in notes.items() if holds]

    def _needs(self) -> dict[object, list[object]]:
        """What each task waits for; a dependency that is archived was met."""
        met = {
            row.get("id")
            for _, row in self.database.rows("archived_tasks")
            if _word(row) == "COMPLETED"
        } - self.ids
        needs: dict[object, list[object]] = {}
        odd: dict[str, None] = {}
        for _, row in self.database.rows("task_dependencies"):
            if row.get("dep_type") not in _WAITED_FOR:
                odd[f"task_dependencies.dep_type: {row['dep_type']}"] = None
            elif row.get("depends_on_task_id") not in met:
                needs.setdefault(row.get("task_id"), []).append(row.get("depends_on_task_id"))
        self.converted.unknown += odd
        return needs

    def _task(self, row: Row, needs: list[object], where: str) -> Brought:
        word = _word(row)
        status = _STATUS.get(word, Status.PARKED)
        agent, mine = row.get("agent_type"), self.folders.get(str(row.get("project_id")), Folders())
        self.agents[row.get("id")] = str(agent) if agent in SHIPPED else None
        parent = row.get("parent_task_id")
        workspace = mine.names.get(str(row.get("preferred_workspace_id")))
        resume = (
            take(row, "resume_after", instant)
            if word == "PAUSED" and row.get("resume_after")
            else 0
        )
        branch = row.get("branch_name")
        record = {
            "id": row.get("id"),
            "project": row.get("project_id"),
            "title": row.get("title") or first_line(row.get("description")) or str(row.get("id")),
            "prompt": self._prompt(row),
            "priority": row.get("priority"),
            "parent": parent if parent in self.ids else None,  # it is not waited for
            "needs": list(dict.fromkeys(needs)) or None,
            "workspace": workspace,
            "base": branch if word in _BEGUN and mine.has_branch(branch) else None,
            "max_attempts": max(1, take(row, "max_retries", count)),
            "agent": self.agents[row.get("id")],
            "not_before": resume or None,
            "meta": self._meta(row, workspace) or None,
        }
        return Brought(
            {key: value for key, value in record.items() if value is not None},
            status,
            created_at=take(row, "created_at", instant) if "created_at" in row else None,
            ended_at=_ended(row) if status is Status.DONE else None,
            failures=take(row, "retry_count", count),
            begun=int(word == "IN_PROGRESS"),
            reason=_reason(row) if status is Status.PARKED or word == "PAUSED" else "",
            where=where,
            paused=word == "PAUSED" and not resume,
        )

    def _prompt(self, row: Row) -> object:
        """Its description, with the context and the criteria that other tables have."""
        said, more = row.get("description"), self.more.get(row.get("id"), [])
        return "\n\n".join([said, *more]) if more and isinstance(said, str) else said

    def _meta(self, row: Row, workspace: str | None) -> Row:
        """What has no field of its own here."""
        kept = [*self.odd, "branch_name"]
        kept += [] if row.get("agent_type") in SHIPPED else ["agent_type"]
        kept += [] if workspace else ["preferred_workspace_id"]
        kept += [] if row.get("parent_task_id") in self.ids else ["parent_task_id"]
        return {name: row[name] for name in kept if isinstance(row.get(name), str | int | float)}

    def _ledger(self) -> None:
        """Booked by project, whatever became of the task."""
        lost = 0
        for where, row in self.database.rows("token_ledger"):
            try:
                at, tokens = take(row, "timestamp", instant), take(row, "tokens_used", count)
            except Invalid as error:
                self.converted.skip(f"entry {row.get('id', '?')}", error.message, where)
                continue
            project = row.get("project_id")
            if project in self.converted.projects:
                agent = self.agents.get(row.get("task_id"))
                self.converted.spent.append(Spent(str(project), at, tokens, agent))
            else:
                lost += tokens
        used = [entry.tokens for entry in self.converted.spent if entry.tokens]
        if used and self.converted.preset is not None:  # for a project without an entry
            self.converted.rule(
                "share.default_estimate", percentile70(used), "what entries of the ledger used"
            )
        if lost:
            self.converted.note(
                f"{lost:,} tokens of the ledger belong to no project that is there: left out."
            )


def _more(database: Database) -> dict[object, list[str]]:
    """What belongs to the prompt of each task."""
    more: dict[object, list[str]] = {}
    for _, row in database.rows("task_context"):
        heading = row.get("label") or row.get("type") or "Context"
        more.setdefault(row.get("task_id"), []).append(f"## {heading}\n\n{row.get('content', '')}")
    criteria: dict[object, list[str]] = {}
    rows = [row for _, row in database.rows("task_criteria")]
    for row in sorted(rows, key=lambda row: str(row.get("sort_order", 0)).zfill(9)):
        criteria.setdefault(row.get("task_id"), []).append(f"- {row.get('content', '')}")
    for task, lines in criteria.items():
        text = "\n".join(["## Acceptance criteria", "", *lines])
        more.setdefault(task, []).append(text)
    return more


def _word(row: Row) -> str:
    return str(row.get("status")).upper()


def _reason(row: Row) -> str:
    """What it was there, and the question or request that it waits for."""
    said = next((row[name] for name in _QUESTIONS if isinstance(row.get(name), str)), "")
    reason = f"{row.get('status')} in agent-queue"
    return f"{reason}: {said}" if said and _word(row) != "PAUSED" else reason


def _ended(row: Row) -> int | None:
    last = next((name for name in ("updated_at", "created_at") if name in row), None)
    return None if last is None else take(row, last, instant)
