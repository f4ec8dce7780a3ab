"""agent-queue homes for tests, and what agent-queue itself would assign next, from its document."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

NOW = 1_769_774_400.0  # 2026-01-30T12:00:00Z
HOUR = 3600.0
SCHEMA = """
CREATE TABLE projects (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, credit_weight REAL, max_concurrent_agents INTEGER,
    status TEXT NOT NULL, budget_limit INTEGER, repo_default_branch TEXT, created_at REAL
);
CREATE TABLE tasks (
    id TEXT, project_id TEXT, parent_task_id TEXT, title TEXT, description TEXT, priority INTEGER,
    status TEXT, retry_count INTEGER DEFAULT 0, max_retries INTEGER DEFAULT 3,
    preferred_workspace_id TEXT, agent_type TEXT, branch_name TEXT, resume_after REAL,
    task_type TEXT, created_at REAL, updated_at REAL
);
CREATE TABLE task_dependencies (task_id TEXT NOT NULL, depends_on_task_id TEXT NOT NULL);
CREATE TABLE token_ledger (
    id TEXT PRIMARY KEY, project_id TEXT, agent_id TEXT, task_id TEXT, tokens_used INTEGER,
    timestamp REAL
);
CREATE TABLE agents (id TEXT PRIMARY KEY, name TEXT, agent_type TEXT, state TEXT);
CREATE TABLE workspaces (
    id TEXT PRIMARY KEY, project_id TEXT, workspace_path TEXT, source_type TEXT, name TEXT,
    locked_by_agent_id TEXT, locked_by_task_id TEXT, locked_at REAL
);
"""
STATUSES = (
    "DEFINED", "READY", "READY", "READY", "ASSIGNED", "IN_PROGRESS", "PAUSED", "WAITING_INPUT",
    "AWAITING_APPROVAL", "COMPLETED", "COMPLETED", "FAILED", "BLOCKED",
)  # fmt: skip
TITLES = ("Größe prüfen", "修正する", "tab\there", 'a "quoted" one', "emoji 🙂", "two\r\nlines")
Row = dict[str, Any]


@dataclass
class AgentQueueHome:
    """What one home holds."""

    folder: Path
    projects: dict[str, Row] = field(default_factory=dict)
    tasks: dict[str, Row] = field(default_factory=dict)
    needs: dict[str, list[str]] = field(default_factory=dict)
    ledger: list[Row] = field(default_factory=list)
    agents: list[Row] = field(default_factory=list)
    workspaces: list[Row] = field(default_factory=list)
    window: float = 24 * HOUR
    guarantee: bool = True
    daily: int | None = None

    def write(self) -> None:
        """The configuration and the database."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [f"scheduling: {{rolling_window_hours: {self.window / HOUR:g}, "]
        lines.append(f"min_task_guarantee: {str(self.guarantee).lower()}}}\r\n")
        if self.daily is not None:
            lines.append(f"global_token_budget_daily: {self.daily}\r\n")
        (self.folder / "config.yaml").write_text("".join(lines), "utf-8", newline="")
        with closing(sqlite3.connect(self.folder / "agent-queue.db")) as connection:
            connection.executescript(SCHEMA)
            needs = [
                {"task_id": task, "depends_on_task_id": need}
                for task, rows in self.needs.items()
                for need in rows
            ]
            tables = {
                "projects": list(self.projects.values()), "tasks": list(self.tasks.values()),
                "task_dependencies": needs, "token_ledger": self.ledger, "agents": self.agents,
                "workspaces": self.workspaces,
            }  # fmt: skip
            for table, rows in tables.items():
                for row in rows:
                    marks = ", ".join("?" * len(row))
                    words = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"
                    connection.execute(words, tuple(row.values()))
            connection.commit()


def made(folder: Path, seed: int, size: int = 30) -> AgentQueueHome:
    """A home: projects of odd weights, a ledger with deleted tasks, workspaces, orphans."""
    random = Random(seed)
    home = AgentQueueHome(folder, window=random.choice((12, 24)) * HOUR)
    home.guarantee = random.random() < 0.8
    if random.random() < 0.3:
        home.daily = random.randint(20_000, 400_000)
    for at in range(random.randint(1, 5)):
        home.projects[f"p{at}"] = {
            "id": f"p{at}",
            "name": random.choice(TITLES),
            "credit_weight": random.choice((1.0, 1.5, 2.25, 3, 4, 0.5)),
            "max_concurrent_agents": random.choice((0, 1, 2, 2, 3)),
            "status": random.choice(("ACTIVE", "ACTIVE", "ACTIVE", "PAUSED", "ARCHIVED")),
            "budget_limit": random.choice((None, None, 50_000, 120_000)),
        }
    states = ("IDLE", "IDLE", "BUSY", "PAUSED", "RETIRED")
    home.agents = [{"id": "agent-0", "name": "x", "agent_type": "claude", "state": "IDLE"}]
    for at in range(1, random.randint(1, 6)):
        row = {"id": f"agent-{at}", "name": "x", "agent_type": "claude"}
        home.agents.append(row | {"state": random.choice(states)})
    if random.random() < 0.6:
        for project in home.projects:
            for at in range(random.randint(0, 3)):
                path = folder / "trees" / f"{project}-{at}"
                (path / ".git").mkdir(parents=True)
                home.workspaces.append(
                    {"id": f"ws-{project}-{at}", "project_id": project, "name": f"tree {at}"}
                    | {"workspace_path": str(path), "source_type": random.choice(("clone", "link"))}
                )
    for at in range(size):
        _add_task(random, home, at)
    names = [*home.tasks, "deleted-1", "deleted-2"]
    for at in range(random.randint(0, 25)):
        age = random.choice((random.uniform(0, 10), random.uniform(30, 90))) * HOUR
        home.ledger.append(
            {
                "id": f"l{at}",
                "project_id": random.choice(list(home.projects)),
                "agent_id": "agent-0",
            }
            | {"task_id": random.choice(names), "tokens_used": random.randint(0, 40_000)}
            | {"timestamp": NOW - age}
        )
    home.write()
    return home


def _add_task(random: Random, home: AgentQueueHome, at: int) -> None:
    name = f"task-{at}"
    project = random.choice(list(home.projects))
    created = NOW - random.uniform(1, 10 * HOUR)
    row: Row = {
        "id": name,
        "project_id": project,
        "parent_task_id": random.choice((None, None, "gone", *home.tasks)),
        "title": random.choice(TITLES),
        "description": random.choice(TITLES),
        "priority": random.choice((None, 10, 50, 100, 100, 200)),
        "status": random.choice(STATUSES),
        "retry_count": random.randint(0, 2),
        "agent_type": random.choice((None, "claude", "some-other")),
        "task_type": random.choice((None, "bugfix")),
        "created_at": created,
        "updated_at": created + 1,
    }
    mine = [ws["id"] for ws in home.workspaces if ws["project_id"] == project]
    row["preferred_workspace_id"] = random.choice((None, None, "gone", *mine))
    if row["status"] == "PAUSED" and random.random() < 0.5:
        row["resume_after"] = NOW + random.uniform(-HOUR, HOUR)
    if home.tasks and random.random() < 0.3:
        home.needs[name] = random.sample(list(home.tasks), min(len(home.tasks), 2))
    if random.random() < 0.04:
        home.needs[name] = ["never-there"]
    unmet = [
        need
        for need in home.needs.get(name, ())
        if home.tasks.get(need, {}).get("status") != "COMPLETED"
    ]
    if unmet and row["status"] in ("READY", "ASSIGNED", "IN_PROGRESS", "COMPLETED", "PAUSED"):
        row["status"] = "DEFINED"
    home.tasks[name] = row


def orphans(home: AgentQueueHome) -> set[str]:
    """Tasks that need one that is not there, and those that need or belong to these."""
    out: set[str] = set()
    while True:
        more = {
            name
            for name in home.tasks.keys() - out
            if any(need in out or need not in home.tasks for need in home.needs.get(name, ()))
            or home.tasks[name]["parent_task_id"] in out
        }
        if not more:
            return out
        out |= more


# The scheduler of the document


@dataclass
class State:
    """`SchedulerState`, and what Fairlane reserves."""

    home: AgentQueueHome
    usage: list[tuple[str, float, int]]  # project, when, tokens
    completed: list[tuple[str, float]]  # project, when
    samples: dict[str, list[int]]  # project -> what attempts used, the newest first
    running: dict[str, str | None] = field(default_factory=dict)  # task -> workspace
    reserved: dict[str, int] = field(default_factory=dict)  # task -> tokens, since its start

    @classmethod
    def of(cls, home: AgentQueueHome) -> State:
        """As it was moved over."""
        newest = sorted(home.ledger, key=lambda row: -row["timestamp"])
        samples: dict[str, list[int]] = {}
        for row in newest:
            if row["tokens_used"]:
                samples.setdefault(row["project_id"], []).append(row["tokens_used"])
        usage = [(row["project_id"], row["timestamp"], row["tokens_used"]) for row in home.ledger]
        done = [
            (task["project_id"], task["updated_at"])
            for task in home.tasks.values()
            if task["status"] == "COMPLETED"
        ]
        return cls(home, usage, done, samples)

    def start(self, task: str, workspace: str | None) -> None:
        """A task runs."""
        self.running[task] = workspace
        self.reserved[task] = self.estimate(self.home.tasks[task]["project_id"])

    def used(self, project: str | None, since: float) -> int:
        """Tokens of a project, or of all, since a time."""
        return sum(n for name, at, n in self.usage if project in (None, name) and at >= since)

    def estimate(self, project: str) -> int:
        """The 70th percentile of what the attempts of a project used; of none, that of all."""
        mine = self.samples.get(project, [])[:50]
        if not mine:
            mine = [row["tokens_used"] for row in self.home.ledger if row["tokens_used"]]
        ordered = sorted(mine) or [100_000]
        return ordered[-(-7 * len(ordered) // 10) - 1]

    def is_ready(self, task: Row, now: float) -> bool:
        """What agent-queue would call READY now."""
        if task["status"] == "PAUSED" and not (
            task.get("resume_after") and task["resume_after"] <= now
        ):
            return False
        if task["status"] not in ("DEFINED", "READY", "ASSIGNED", "IN_PROGRESS", "PAUSED"):
            return False
        needs = (self.home.tasks[need] for need in self.home.needs.get(task["id"], ()))
        return task["id"] not in self.running and all(n["status"] == "COMPLETED" for n in needs)


class Round:
    """`schedule`, one idle agent after the other; the sums are those of its beginning.

    The differences on purpose: inside a project older tasks go before younger ones of the same
    priority; tokens of projects without ready work do not count; of projects that are equally far
    behind, the one with the better task goes first; a workspace is taken with the pick; what runs
    has its estimate reserved in budgets; every agent counts that is not retired.
    """

    def __init__(self, state: State, now: float) -> None:
        self.state, self.now, self.since = state, now, now - state.home.window
        ready = self._ready()
        self.active = [
            row
            for row in state.home.projects.values()
            if row["status"] == "ACTIVE" and row["id"] in ready
        ]
        self.weights = sum(Fraction(row["credit_weight"]) for row in self.active)
        self.total = sum(state.used(row["id"], self.since) for row in self.active) or 1

    def _ready(self) -> dict[str, list[Row]]:
        ready: dict[str, list[Row]] = {}
        for task in self.state.home.tasks.values():
            if self.state.is_ready(task, self.now):
                ready.setdefault(task["project_id"], []).append(task)
        return {name: sorted(rows, key=_place) for name, rows in ready.items()}

    def next_action(self) -> str | None:
        """The task that the next idle agent gets."""
        state, home = self.state, self.state.home
        agents = sum(agent["state"] != "RETIRED" for agent in home.agents)
        if len(state.running) >= agents:
            return None
        if _spent_up(state, None, home.daily, self.now - 24 * HOUR):
            return None
        ready = self._ready()
        locked = {(home.tasks[task]["project_id"], place) for task, place in state.running.items()}
        choices = []
        for row in self.active:
            name = row["id"]
            free = [task for task in ready.get(name, ()) if _has_workspace(home, task, locked)]
            mine = sum(home.tasks[task]["project_id"] == name for task in state.running)
            if not free or mine >= row["max_concurrent_agents"]:
                continue
            if not _spent_up(state, name, row["budget_limit"], self.since):
                choices.append((*self._key(row), *_place(free[0]), free[0]["id"]))
        return str(min(choices)[-1]) if choices else None

    def _key(self, row: Row) -> tuple[int, Fraction]:
        """`project_sort_key`."""
        name, state = row["id"], self.state
        completed = any(project == name and at >= self.since for project, at in state.completed)
        target = Fraction(row["credit_weight"]) / self.weights
        deficit = Fraction(state.used(name, self.since), self.total) - target
        return (1 if completed or not state.home.guarantee else 0, deficit)


def _place(task: Row) -> tuple[int, float]:
    return (100 if task["priority"] is None else task["priority"], task["created_at"])


def _spent_up(state: State, project: str | None, limit: int | None, since: float) -> bool:
    reserved = sum(
        state.reserved[task]
        for task in state.running
        if project in (None, state.home.tasks[task]["project_id"])
    )
    return limit is not None and state.used(project, since) + reserved >= limit


def _has_workspace(home: AgentQueueHome, task: Row, locked: set[tuple[str, str | None]]) -> bool:
    """A free one of its project, or the one that it prefers; without any, none is needed."""
    if not home.workspaces:
        return True
    project = task["project_id"]
    mine = {
        ws["id"]: ws["name"].replace(" ", "-")
        for ws in home.workspaces
        if ws["project_id"] == project
    }
    preferred = mine.get(task["preferred_workspace_id"])
    wanted = [preferred] if preferred else list(mine.values())
    return any((project, name) not in locked for name in wanted)
