"""The table of operations: how each is called over HTTP and MCP, and what it takes.

One line here is one route, one tool where agents may use it, and one method of `Fairlane`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from fairlane.model.amounts import DOLLARS_MAX, TOKENS_MAX
from fairlane.model.record import NamedTuple

if TYPE_CHECKING:

    class Schema(TypedDict, total=False):
        """The JSON Schema of an argument."""

        type: str
        description: str
        default: object
        enum: list[str]
        anyOf: list[Schema]
        items: Schema
        properties: Mapping[str, Schema]
        required: list[str]
        additionalProperties: bool
        minimum: float
        maximum: float
        minItems: int
        maxItems: int

else:
    Schema = dict  # what it may hold is for type checkers alone

#: Most tasks, ids or leases that one call names.
MANY_MAX = 10_000
#: Most rows that one page holds, and how many it holds if nothing is said.
PAGE_MAX, PAGE = 1000, 100
#: Longest wait of one call for work, in words.
WAIT_MAX = "60s"


class Operation(NamedTuple):
    """One operation as interfaces see it, and the function that performs it."""

    name: str
    call: str  # below `fairlane`: module:function; imported when it is called
    method: str
    path: str  # below /api/v1
    takes: Mapping[str, Schema] = MappingProxyType({})
    needs: tuple[str, ...] = ()  # arguments without which it makes no sense
    gives: str = "Document"  # the name of the answer's type, without `Answer`
    #: Arguments that the function takes as exact values: past, instant or duration.
    converts: Mapping[str, str] = MappingProxyType({})
    reads: bool = False  # changes nothing
    tool: bool = False  # agents may call it
    as_tool: str = ""  # its name as a tool, where that is another
    #: What an attempt may do with it: `lease`, of its own lease; `task`, of its own task;
    #: `children`, add them; `look`, by a command but not by its token. Empty: nothing.
    attempt: Literal["lease", "task", "children", "look", ""] = ""
    page: bool = False  # the page does it, so its cookie may
    #: The argument that the rest of the body is, where the body is no list of arguments.
    rest: str | None = None
    #: Where several are named in the body; `path` then names one, as the only one of `ids`.
    many: str | None = None
    example: Mapping[str, object] = MappingProxyType({})
    #: How many seconds its answer may take; it ends when the caller hangs up. 0: answers at once.
    lasts: float = 0.0

    @property
    def tool_name(self) -> str:
        """What agents call it."""
        return self.as_tool or self.name

    @property
    def places(self) -> tuple[str, ...]:
        """The arguments that are in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


def _text(about: str, **more: Unpack[Schema]) -> Schema:
    return {"type": "string", "description": about, **more}


def _whole(about: str, least: int = 0, most: int = 2**53 - 1, **more: Unpack[Schema]) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": about, **more}


def _flag(about: str) -> Schema:
    return {"type": "boolean", "default": False, "description": about}


def _words(about: str, **more: Unpack[Schema]) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": about, **more}


def _open(about: str) -> Schema:
    return {"type": "object", "description": about}


_TASK = _text("The task's id.")
_LEASE = _text("The lease, as `lease` gave it.")
_NAME = _text("Its name.")
_CHECK = _text("The check of this name, instead of the agent.")
_IDS = _words("Ids of tasks.", maxItems=MANY_MAX)
_SCOPE = _text("all, project:P, kind:K, pool:P, group:G or task:T.", default="all")
_SINCE = _text("How far back: a length such as 12h, or a time.")
_CURSOR = _whole("The `cursor` of the page before.")
_LIMIT = _whole("Most rows of this page.", 1, PAGE_MAX, default=PAGE)
_TOKENS: Schema = {
    "description": "Totals so far, by counter; a bare number is output.",
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": TOKENS_MAX},
        {
            "type": "object",
            "properties": {
                name: {"type": "integer", "minimum": 0, "maximum": TOKENS_MAX}
                for name in ("input", "output", "cache_read", "cache_write")
            },
            "additionalProperties": False,
        },
    ],
}
_COST: Schema = {
    "type": "number",
    "minimum": 0,
    "maximum": DOLLARS_MAX,
    "description": "Dollars so far.",
}
_USED: Mapping[str, Schema] = {"tokens": _TOKENS, "cost": _COST}
_WAIT: Schema = {
    "anyOf": [{"type": "string"}, {"type": "number", "minimum": 0, "maximum": 10**9}],
    "description": "A length such as 30s; a bare number is seconds.",
}
_CHECKS: Schema = {
    "type": "array",
    "maxItems": 100,
    "description": "What came of the checks of the lease, by name.",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "exit": {"type": "integer", "minimum": -1000, "maximum": 1000},
            "seconds": {"type": "number", "minimum": 0},
            "output": {"type": "string", "description": "The end of what it printed."},
        },
        "required": ["name", "exit"],
        "additionalProperties": False,
    },
}
_RULES: Schema = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "policy": {"type": "object"}},
    "required": ["policy"],
    "additionalProperties": False,
}
_OUTCOMES = (
    "succeeded", "failed", "launch_failed", "throttled", "environment", "released", "canceled",
)  # fmt: skip

_WORK = (
    Operation(
        "add", "service.tasks:add", "POST", "/tasks",
        {
            "tasks": {
                "type": "array", "minItems": 1, "maxItems": MANY_MAX, "items": {"type": "object"},
                "description": "Tasks by the model's field names: prompt, project, kind, …",
            },
            "again": _flag("Put back what is done or canceled."),
            "force": _flag("An id may have another project's prefix."),
            "chain": _flag("Each needs the one before."),
            "recipe": _text("Make a chain out of one task: full, fix, plan, …"),
            "dry_run": _flag("Tell what would be added; add nothing."),
            "group": _text("The group of tasks that name none."),
            "defaults": _open("Fields for tasks that do not give them."),
        },
        ("tasks",), "Added", page=True, tool=True, attempt="children",
        example={"tasks": [{"prompt": "Fix the login form", "project": "default"}]},
    ),
    Operation(
        "list", "service.reports.listing:list_tasks", "GET", "/tasks",
        {
            "project": _text("Only of this project."),
            "kind": _text("Only of this kind."),
            "status": _words("Only with one of these statuses."),
            "group": _text("Only of this group."),
            "held_by": _text("Only held by this gate or code: cap, needs, …"),
            "cursor": _CURSOR,
            "limit": _LIMIT,
        },
        (), "Tasks", page=True, reads=True, attempt="look", tool=True,
        example={"status": ["queued"], "limit": 20},
    ),
    Operation("show", "service.reports.listing:show", "GET", "/tasks/{task}",
              {"task": _TASK}, ("task",), "Task", page=True, reads=True, attempt="task", tool=True,
              example={"task": "t1"}),
    Operation("edit", "service.tasks:edit", "PATCH", "/tasks/{ids}",
              {"ids": _IDS, "changes": _open("Fields with their new values; null empties one.")},
              ("ids", "changes"), "Tasks", page=True, rest="changes", many="/tasks",
              example={"ids": ["t1"], "changes": {"priority": 10}}),
    Operation("cancel", "service.tasks:cancel", "POST", "/tasks/{ids}/cancel",
              {"ids": _IDS, "tree": _flag("Their descendants too."),
               "group": _text("Every task of this group."), "reason": _text("Why.")},
              (), "Changed", page=True, tool=True, many="/cancel", example={"ids": ["t1"]}),
    Operation("check", "runtime.recheck:check", "POST", "/tasks/{task}/check",
              {"task": _TASK, "names": _words("Only these checks.")}, ("task",), "Checked",
              page=True, example={"task": "t1"}),
    Operation("retry", "service.tasks:retry", "POST", "/tasks/{ids}/retry",
              {"ids": _IDS}, ("ids",), "Changed",
              page=True, tool=True, many="/retry", example={"ids": ["t1"]}),
)  # fmt: skip
_LOOK = (
    Operation("status", "service.reports.status:status", "GET", "/status",
              gives="Status", page=True, reads=True, attempt="look", tool=True),
    Operation("plan", "service.planning:plan", "GET", "/plan", gives="Plan", page=True, reads=True,
              attempt="look", tool=True),
    Operation("why", "service.explain:why", "GET", "/tasks/{task}/why",
              {"task": _TASK}, ("task",), "Why", page=True, reads=True, attempt="task", tool=True,
              example={"task": "t1"}),
    Operation("logs", "service.logs:page", "GET", "/tasks/{task}/logs",
              {"task": _TASK, "attempt": _whole("Which attempt; default: the last.", 1),
               "stream": _text("Which one.", enum=["stdout", "stderr"], default="stdout"),
               "offset": _whole("From this byte on; default: the end."),
               "limit": _whole("Most bytes.", 1, 256 * 1024),
               "check": _CHECK},
              ("task",), "Log", page=True, reads=True, attempt="task", example={"task": "t1"}),
    Operation("check_log", "service.logs:check_page", "GET", "/tasks/{task}/checks/{name}/log",
              {"task": _TASK, "name": _text("The name of the check."),
               "attempt": _whole("Which attempt; default: the last.", 1),
               "stream": _text("Which one.", enum=["stdout", "stderr"], default="stdout"),
               "offset": _whole("From this byte on; default: the end."),
               "limit": _whole("Most bytes.", 1, 256 * 1024)},
              ("task", "name"), "Log", page=True, reads=True, attempt="task",
              example={"task": "t1", "name": "make test"}),
    Operation("transcript", "service.transcripts:page", "GET", "/tasks/{task}/transcript",
              {"task": _TASK, "attempt": _whole("Which attempt; default: the last.", 1),
               "cursor": _text("The `cursor` of the page before; default: the beginning."),
               "limit": _whole("Most entries of this page.", 1, PAGE_MAX, default=PAGE),
               "since": _text("Only what was printed since: a length such as 12h, or a time."),
               "stream": _text("Which one.", enum=["stdout", "stderr"], default="stdout"),
               "check": _CHECK},
              ("task",), "Transcript", converts={"since": "past"}, page=True, reads=True,
              attempt="task", tool=True, as_tool="logs", example={"task": "t1", "limit": 20}),
    Operation("diff", "service.work:diff", "GET", "/tasks/{task}/diff",
              {"task": _TASK, "attempt": _whole("Which attempt; default: the last.", 1),
               "files": _words("Only these files, and what is below these folders.",
                               maxItems=1000),
               "carried": _flag("From the base: with the work that it started from."),
               "stat": _flag("Without the text of the changes.")},
              ("task",), "Diff", page=True, reads=True, attempt="task", tool=True,
              example={"task": "t1", "files": ["src"]}),
    Operation("events", "service.reports.listing:page", "GET", "/events",
              {"cursor": _whole("Events after this number; default: the newest."),
               "task": _text("Only of this task."),
               "kind": _text("Only of this kind: parked, check_failed, …"), "limit": _LIMIT},
              (), "Events", page=True, reads=True, attempt="look",
              example={"cursor": 0, "limit": 10}),
    Operation("summary", "service.reports.summary:summary", "GET", "/summary",
              {"since": _SINCE}, (), "Summary",
              converts={"since": "past"}, page=True, reads=True, attempt="look",
              example={"since": "12h"}),
    Operation("stats", "service.reports.stats:stats", "GET", "/stats",
              {"since": _SINCE}, (), "Stats", converts={"since": "past"}, page=True, reads=True,
              attempt="look",
              example={"since": "7d"}),
    Operation("decisions", "engine.decisions:listing", "GET", "/decisions",
              {"cursor": _CURSOR, "limit": _LIMIT}, (), "Decisions", reads=True, attempt="look"),
    Operation("decision", "engine.decisions:show", "GET", "/decisions/{number}",
              {"number": _whole("The decision.", 1)}, ("number",), "Decision", reads=True,
              attempt="look",
              example={"number": 1}),
    Operation("replay", "engine.decisions:replay", "POST", "/decisions/{number}/replay",
              {"number": _whole("The decision.", 1),
               "planner": _text("Which one.", enum=["lanes", "reference"], default="lanes")},
              ("number",), "Replayed", reads=True, attempt="look", example={"number": 1}),
    Operation("simulate", "simulation.simulate:simulate", "POST", "/simulate",
              {"workload": _open("The workload, with the keys of a workload file."),
               "policies": {
                   "type": "array", "minItems": 1, "maxItems": 20,
                   "description": "Presets by name, or rules; default: the policy in force.",
                   "items": {"anyOf": [{"type": "string"}, _RULES]},
               },
               "seed": _whole("The seed of all draws.", default=1),
               "days": _whole("Stop after this many days.", 1, 3660),
               "name": _text("What the answer calls the workload.", default="workload")},
              ("workload",), "Simulate", page=True, reads=True,
              example={"workload": {"days": 1, "work": {"default": {"duration": "10m"}},
                                    "source": [{"every": "1h"}]},
                       "policies": ["balanced", "fair-share"]}, lasts=3600.0),
)  # fmt: skip
_PULL = (
    Operation("lease", "service.pull:lease", "POST", "/leases",
              {"limit": _whole("At most this many; default: all that may start.", 0, MANY_MAX),
               "worker": _text("Who asks; default: this machine's name."),
               "labels": _words("What this worker has: gpu, os=linux."),
               "wait": {**_WAIT, "description": f"Wait so long for work, at most {WAIT_MAX}."}},
              (), "Leases", converts={"wait": "duration"}, tool=True,
              example={"limit": 1, "worker": "box1"}),
    Operation("heartbeat", "service.pull:heartbeat", "POST", "/leases/{lease}/heartbeat",
              {"lease": _LEASE}, ("lease",), "Held", tool=True, attempt="lease",
              example={"lease": "L7"}),
    Operation("report", "service.pull:report", "POST", "/leases/{lease}/report",
              {"lease": _LEASE, **_USED, "note": _text("What it is doing."),
               "session": _text("The agent's own session.")},
              ("lease",), "Held", tool=True, attempt="lease",
              example={"lease": "L7", "note": "tests are green"}),
    Operation("complete", "service.pull:complete", "POST", "/leases/{lease}/complete",
              {"lease": _LEASE, **_USED, "result": _open("What came of it."), "checks": _CHECKS},
              ("lease",), "Held", tool=True, attempt="lease",
              example={"lease": "L7", "tokens": {"input": 12000, "output": 800}, "cost": 0.21}),
    Operation("release", "service.pull:release", "POST", "/leases/{lease}/release",
              {"lease": _LEASE, **_USED, "reason": _text("What went wrong."),
               "outcome": _text("How it ended.", enum=list(_OUTCOMES), default="released"),
               "failed": _flag("The work failed: outcome failed."),
               "retry_after": _WAIT, "resets_at": _text("When the provider's window opens.")},
              ("lease",), "Held", tool=True, attempt="lease",
              converts={"retry_after": "duration", "resets_at": "instant"},
              example={"lease": "L7", "outcome": "failed", "reason": "exit 1"}),
    Operation("reclaim", "service.pull:reclaim", "POST", "/reclaim", gives="Reclaimed", tool=True),
)  # fmt: skip
_HOUSE = (
    Operation("pause", "service.queue:pause", "POST", "/pause",
              {"scope": _SCOPE, "reason": _text("Why.")}, (),
              "Paused", page=True, tool=True,
              example={"scope": "project:web", "reason": "release day"}),
    Operation("resume", "service.queue:resume", "POST", "/resume",
              {"scope": _SCOPE}, (), "Resumed", page=True, tool=True,
              example={"scope": "project:web"}),
    Operation("clear", "service.queue:clear", "POST", "/clear",
              {"scope": _SCOPE, "dry_run": _flag("Tell what; cancel nothing.")}, (), "Cleared",
              example={"scope": "project:web", "dry_run": True}),
    Operation("policy_show", "service.policies:show", "GET", "/policy", gives="Policy", reads=True,
              tool=True),
    Operation("policy_set", "service.policies:change", "PATCH", "/policy",
              {"changes": _open("Keys with their new values, such as caps.all.")}, ("changes",),
              "PolicyChanged", page=True, tool=True, rest="changes",
              example={"changes": {"caps.all": 8}}),
    Operation("project_list", "service.projects:list_projects", "GET", "/projects",
              gives="Projects", page=True, reads=True),
    Operation("project_show", "service.projects:show_project", "GET", "/projects/{name}",
              {"name": _NAME}, ("name",), "Project", page=True, reads=True,
              example={"name": "default"}),
    Operation("project_add", "service.projects:add_project", "POST", "/projects",
              {"name": _NAME, "values": _open("Its keys: weight, repo, prefix, …")}, ("name",),
              "Project", rest="values", example={"name": "web", "values": {"weight": 3}}),
    Operation("project_set", "service.projects:set_project", "PATCH", "/projects/{name}",
              {"name": _NAME, "values": _open("Keys with their new values.")},
              ("name", "values"), "Project", rest="values",
              example={"name": "default", "values": {"weight": 2}}),
    Operation("project_remove", "service.projects:remove_project", "DELETE", "/projects/{name}",
              {"name": _NAME}, ("name",), "Removed", example={"name": "web"}),
    Operation("group_list", "service.reports.groups:list_groups", "GET", "/groups",
              gives="Groups", page=True, reads=True, attempt="look"),
    Operation("group_show", "service.reports.groups:show_group", "GET", "/groups/{name}",
              {"name": _NAME}, ("name",), "Group", page=True, reads=True, attempt="look",
              example={"name": "release"}),
    Operation("group_add", "service.groups:add_group", "POST", "/groups",
              {"name": _NAME, "parent": _text("The group above it."),
               "priority": _whole("For tasks that give none.", -(10**9), 10**9),
               "title": _text("What people read."),
               "tree": _open("Its `tasks`, and `groups` under it, each with a name and the same."),
               "project": _text("With a tree: for tasks that name none."),
               "dry_run": _flag("With a tree: tell what would be added; add nothing.")}, ("name",),
              "Group", example={"name": "release"}),
    Operation("group_set", "service.groups:set_group", "PATCH", "/groups/{name}",
              {"name": _NAME, "values": _open("parent, priority or title; null takes it away.")},
              ("name", "values"), "Group", rest="values",
              example={"name": "release", "values": {"priority": 10}}),
    Operation("pool_list", "service.reports.resources:list_pools", "GET", "/pools",
              gives="Pools", page=True, reads=True, attempt="look"),
    Operation("pool_show", "service.reports.resources:show_pool", "GET", "/pools/{name}",
              {"name": _NAME}, ("name",), "Pool", page=True, reads=True, attempt="look",
              example={"name": "anthropic"}),
    Operation("worker_list", "service.reports.resources:list_workers", "GET", "/workers",
              gives="Workers", page=True, reads=True),
    Operation("worker_show", "service.reports.resources:show_worker", "GET", "/workers/{name}",
              {"name": _NAME}, ("name",), "Worker", page=True, reads=True,
              example={"name": "box1"}),
)  # fmt: skip

#: Every operation, by name.
OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {operation.name: operation for operation in (*_WORK, *_LOOK, *_PULL, *_HOUSE)}
)
