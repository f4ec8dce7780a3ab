"""The cast: what people, programs that pull work, attempts and sources do, drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.model.instant import SECOND, show_instant
from fairlane.testing.torture.history import Choice
from fairlane.testing.torture.stage import STORE

if TYPE_CHECKING:
    from fairlane.testing.torture.dice import Dice
    from fairlane.testing.torture.world import World

PROJECTS = ("default", "web", "ops", "lab")
KINDS = ("code", "review", "plan")
GROUPS = ("g", "h", "k")
SCOPES = (
    "all", "project:web", "project:ops", "kind:review", "group:g", "group:h", "pool:east",
    "pool:west",
)  # fmt: skip
OUTCOMES = (
    "succeeded", "failed", "launch_failed", "throttled", "environment", "released", "canceled",
)  # fmt: skip
#: Lines of policy files; each file has some of them.
RULES = (
    "caps.all = 1", "caps.all = 3", "caps.all = 8", "caps.all = 0", 'caps."kind:review" = 1',
    'caps."kind:*" = 2', 'caps."project:*" = 2', 'caps."project:web" = 1', 'caps."pool:east" = 1',
    'caps."agent:bob" = 1', 'caps."group:g" = 1', 'caps."group:*" = 2', 'caps."label:gpu" = 1',
    'share.mode = "deficit"', 'share.mode = "none"', "share.guarantee = 0",
    'share.window = "1h"', "share.idle_credit = 0", 'overdue.after = "10m"', 'overdue.after = "0s"',
    'score.age_from = "created"', 'order = ["priority", "score", "age"]', 'order = ["age"]',
    'readiness.parent = "none"', 'readiness.upstream = "cancel"', 'readiness.upstream = "run"',
    'locks.serial = "none"', "locks.parallel_default = false", 'lease.ttl = "30s"',
    'lease.ttl = "20m"', 'retry.base = "0s"', "retry.max_attempts = 1", "retry.max_attempts = 8",
    'retry.cap = "1h"\nretry.base = "10m"', "breaker.launch_failures = 1",
    'breaker.half_open_after = "none"', 'breaker.half_open_after = "1m"', "capacity.batch = 1",
    'capacity.spawn_delay = "2s"', 'cooldown.base = "1m"', "cooldown.probe = 2",
    'recovery.stale_after = "1m"', 'history.keep = "20m"', 'history.keep = "2h"',
    'attempt.timeout = "5m"', 'attempt.silence = "1m"', "checks.rounds = 0",
    "backpressure.hard = 9", 'usage.count = ["output", "cache_read"]', "limits.children = 2",
    'attempt.may_add.agents = "any"',
)  # fmt: skip
#: What one report of a caller may use (`_used`) uses some of them up to the last token or cent.
BUDGETS = (
    ("all", "tokens = 1000000"), ("project:web", "tokens = 200000"), ("pool:east", 'usd = "2.00"'),
    ("group:g", "tokens = 30000"), ("project:ops", 'usd = "0.30"'), ("all", "tokens = 13333"),
)  # fmt: skip
WINDOWS = ("30m", "5h", "24h", "day", "week", "total")
PRESETS = ("balanced", "depth-first", "serial-lanes", "fair-share", "batch-dispatch", "fail-closed")
BROKEN = ("caps.all = -1\n", "caps.al = 3\n", "caps = [", "preset = 'nobody'\n", "\x00")


#: How many things people and programs do, and how much more often than usual in one history.
ACTS, HABITS = 22, (1, 1, 1, 1, 2, 5)


def _few(dice: Dice, choices: tuple[str, ...], most: int) -> list[str]:
    """Some of these: the same ones come again and again."""
    return [dice.one(choices) for _ in range(most)]


class Cast:
    """Draws what comes next; it looks at the world for names that exist."""

    def __init__(self, dice: Dice, world: World) -> None:
        self._dice, self._world = dice, world
        self._called = self._added = 0
        self._entries: list[dict[str, object]] = []
        self._awaited: list[str] = []  # tasks in whose folders files shall appear
        # Every history has habits of its own: what is rare comes often in some of them.
        self._habits = [dice.one(HABITS) for _ in range(ACTS)]
        self._scopes, self._rules_known = _few(dice, SCOPES, 5), _few(dice, RULES, 16)

    def act(self) -> list[Choice]:
        """One thing that somebody does, or the same twice: messages can be doubled."""
        dice = self._dice
        choice = dice.weighted(self._weights())()
        if choice[0] == "ask" and dice.chance(40):
            again = (choice[0], self._name("again"), *choice[2:])
            return [choice, again]
        if choice[0] == "ask" and dice.chance(30):
            late = ("freeze", choice[1], dice.one((5.0, 90.0, 1000.0)))
            return [choice, late]
        return [choice]

    def _weights(self) -> list[tuple[int, Any]]:
        few = len(self._world.ids) < 6 or self._world.waiting < 10
        acts = [
            (40 if few else 6, self._add), (8, self._edit), (6, self._cancel), (10, self._retry),
            (6, self._pause), (10, self._resume), (1, self._clear), (7, self._rules),
            (4, self._project), (8, self._group), (2, self._remove), (15, self._lease),
            (8, self._beat), (8, self._report), (14, self._complete), (10, self._release),
            (5, self._touch), (3, self._reclaim), (8, self._call), (5, self._source),
            (6, self._look), (4, self._again),
        ]  # fmt: skip
        return [
            (weight * habit, act) for (weight, act), habit in zip(acts, self._habits, strict=True)
        ]

    def _ask(self, operation: str, **arguments: object) -> Choice:
        host = self._dice.one(("a", "b", "c", "c"))
        return ("ask", self._name("ann"), host, operation, arguments)

    def _name(self, who: str) -> str:
        self._called += 1
        return f"{who}-{self._called}"

    def _task(self) -> str:
        """One of the tasks that were added, often a new one."""
        ids = self._world.ids[-30:] or ["t0"]
        return self._dice.one(ids[-6:] if self._dice.chance(500) else ids)

    # People

    def _add(self) -> Choice:
        dice = self._dice
        records = [self._record() for _ in range(1 + dice.below(4))]
        more: dict[str, object] = {}
        if dice.chance(120):
            more["chain"] = True
        if dice.chance(60):
            more["again"] = True
            records[0]["id"] = self._task()
        return self._ask("add", tasks=records, **more)

    def _again(self) -> Choice:
        """What is over is put back, whole."""
        over = self._world.finished() or [self._task()]
        task = {"id": self._dice.one(over), "prompt": "go"}
        return self._ask("add", tasks=[task], again=True)

    def _record(self) -> dict[str, object]:
        dice = self._dice
        self._added += 1
        made: dict[str, object] = {"id": f"t{self._added}", "prompt": "go"}
        made["project"] = dice.one(PROJECTS[:3])
        if dice.chance(150):
            made["project"] = dice.one(PROJECTS)
        made["kind"] = dice.one(KINDS)
        features: dict[str, Any] = {
            "agent": lambda: dice.one(("ada", "bob", "bob", "nobody")),
            "needs": lambda: sorted({self._task() for _ in range(1 + dice.below(2))}),
            "parent": self._task, "group": lambda: dice.one(GROUPS),
            "parallel": lambda: dice.chance(300), "locks": lambda: dice.some(("x", "y", "z"), 3),
            "priority": lambda: dice.below(5) * 50, "max_attempts": lambda: 1 + dice.below(4),
            "not_before": lambda: self._moment(dice.one((5, 180, 7200))),
            "estimate_tokens": lambda: dice.one((1, 1000, 50_000, 10**7)),
            "workspace": lambda: "w1", "labels": lambda: ["gpu"],
            "timeout": lambda: dice.one(("20s", "10m")),
            "checks": lambda: [["make", "test"], ["make", "lint"]][: 1 + dice.below(2)],
            "pool": lambda: dice.one(("east", "west", "north")),
        }  # fmt: skip
        if dice.chance(150):
            made["checks"] = features["checks"]()
        if dice.chance(200):
            made["group"] = features["group"]()
        for name in dice.some(tuple(features), 5):
            if name not in ("parent", "needs") or self._world.ids:
                made[name] = features[name]()
        if made.get("parent") and dice.chance(500):
            made["artifacts"] = ["out.txt"]
            self._awaited.append(str(made["parent"]))
        if made.get("workspace"):
            made["project"] = "ops"
        return made

    def _moment(self, seconds: int) -> str:
        return show_instant(self._world.stage.hosts[STORE].now() + seconds * SECOND)

    def _edit(self) -> Choice:
        dice = self._dice
        changes = dice.one(
            (
                {"priority": dice.below(300)}, {"kind": dice.one(KINDS)}, {"agent": "bob"},
                {"locks": dice.some(("x", "y"), 2)}, {"group": dice.one(GROUPS)}, {"group": None},
                {"parallel": False}, {"not_before": self._moment(60)},
                {"project": dice.one(PROJECTS)}, {"max_attempts": 1 + dice.below(3)},
                {"pool": dice.one(("east", "west"))},
                {"artifacts": None}, {"labels": None}, {"checks": [["make", "all"]]},
            )
        )  # fmt: skip
        return self._ask("edit", ids=[self._task()], changes=changes)

    def _cancel(self) -> Choice:
        if self._dice.chance(100):
            return self._ask("cancel", group=self._dice.one(GROUPS))
        return self._ask("cancel", ids=[self._task()], tree=self._dice.chance(300))

    def _retry(self) -> Choice:
        failed = self._world.failed()
        task = self._dice.one(failed) if failed and self._dice.chance(700) else self._task()
        return self._ask("retry", ids=[task])

    def _pause(self) -> Choice:
        return self._ask("pause", scope=self._scope())

    def _resume(self) -> Choice:
        return self._ask("resume", scope="all" if self._dice.chance(300) else self._scope())

    def _scope(self) -> str:
        if self._dice.chance(200):
            return f"task:{self._task()}"
        return self._dice.one(self._scopes)

    def _clear(self) -> Choice:
        return self._ask("clear", scope=self._scope())

    def _project(self) -> Choice:
        dice = self._dice
        name = dice.one(PROJECTS)
        values = dice.one(
            (
                {"weight": dice.below(4)}, {"max_in_flight": 1 + dice.below(2)},
                {"max_in_flight": None}, {"agent": "bob"}, {"status": "paused"},
                {"status": "active"},
                {"budgets": [{"tokens": 50_000, "window": "2h", "on_exceeded": "stop"}]},
                {"budgets": None}, {"checks": [["make", "test"]]}, {"checks": None},
                {"workspaces": ["w1"]} if name == "ops" else {"weight": 1},
            )
        )  # fmt: skip
        operation = "project_add" if name == "lab" and dice.chance(500) else "project_set"
        return self._ask(operation, name=name, values=values)

    def _remove(self) -> Choice:
        return self._ask("project_remove", name=self._dice.one(("lab", "lab", "ops", "web")))

    def _group(self) -> Choice:
        dice = self._dice
        name = dice.one(GROUPS)
        values: dict[str, object] = {"parent": dice.one((*GROUPS, None))}
        if dice.chance(300):
            values = {"priority": dice.below(200)}
        if dice.chance(300):
            return self._ask("group_add", name=name)
        return self._ask("group_set", name=name, values=values)

    def _rules(self) -> Choice:
        if self._dice.chance(80):
            return ("rules", self._dice.one(BROKEN))
        return self.rules()

    def rules(self) -> Choice:
        """A policy file; each history knows some of the settings, and uses them often."""
        dice = self._dice
        preset = dice.one(PRESETS) if dice.chance(300) else "balanced"
        chosen: dict[str, str] = {}
        for line in dice.some(self._rules_known, 7):
            chosen[line.partition(" =")[0]] = line
        lines = [f'preset = "{preset}"', *chosen.values()]
        for scope, limit in dice.some(BUDGETS, 2) if dice.chance(500) else ():
            lines += ["[[budget]]", f'scope = "{scope}"', limit]
            lines += [f'window = "{dice.one(WINDOWS)}"']
            lines += ['on_exceeded = "stop"'] if dice.chance(400) else []
        return ("rules", "\n".join(lines) + "\n")

    def _touch(self) -> Choice:
        """A file appears for which tasks wait."""
        return ("touch", self._dice.one(self._awaited[-6:] or [self._task()]))

    def _look(self) -> Choice:
        """Who only looks meets no error either."""
        name = self._dice.one(
            ("status", "plan", "list", "why", "show", "summary", "stats", "events", "pool_list",
             "group_list", "project_list", "worker_list", "decisions"),
        )  # fmt: skip
        arguments = {"task": self._task()} if name in ("why", "show") else {}
        return self._ask(name, **arguments)

    # Programs that pull work, and attempts

    def _lease(self) -> Choice:
        dice = self._dice
        labels = ["gpu"] if dice.chance(300) else []
        worker, limit = f"pull{dice.below(3)}", 1 + dice.below(3)
        return self._ask("lease", worker=worker, limit=limit, labels=labels)

    def _beat(self) -> Choice:
        return self._ask("heartbeat", lease=self._lease_number())

    def _report(self) -> Choice:
        return self._ask("report", lease=self._lease_number(), note="on it", **self._used())

    def _complete(self) -> Choice:
        checks = [{"name": "make test", "exit": 0}, {"name": "make lint", "exit": 0}]
        arguments: dict[str, object] = {"lease": self._lease_number(), **self._used()}
        if self._dice.chance(500):
            arguments["checks"] = checks[: 1 + self._dice.below(2)]
        return self._ask("complete", **arguments)

    def _release(self) -> Choice:
        dice = self._dice
        outcome = dice.one(OUTCOMES)
        arguments: dict[str, object] = {"lease": self._lease_number(), "outcome": outcome}
        if outcome == "throttled":
            arguments["retry_after"] = dice.one((1, 60, 3000))
        return self._ask("release", **arguments, **self._used())

    def _reclaim(self) -> Choice:
        return self._ask("reclaim")

    def _lease_number(self) -> int:
        """Counted from the newest; old ones have ended, and holders come late."""
        return self._dice.below(3) if self._dice.chance(750) else self._dice.below(12)

    def _used(self) -> dict[str, object]:
        dice = self._dice
        if dice.chance(300):
            return {}
        total = dice.one((0, 7, 800, 12_000, 150_000, 3_000_000))
        used: dict[str, object] = {"tokens": {"input": total, "output": total // 9}}
        return used | ({"cost": total / 500_000} if dice.chance(600) else {})

    def _call(self) -> Choice:
        """What an attempt does through its socket."""
        dice = self._dice
        child = {"prompt": "child", "kind": dice.one(KINDS)}
        operation, arguments = dice.one(
            (
                ("add", {"tasks": [child] * (1 + dice.below(3))}), ("heartbeat", {}),
                ("report", {"note": "half", **self._used()}), ("complete", self._used()),
                ("release", {"outcome": dice.one(("failed", "released"))}),
                ("pause", {"scope": "all"}),
            )
        )  # fmt: skip
        host = dice.one(("a", "b"))
        return ("call", self._name("agent"), host, dice.below(4), operation, arguments)

    def _source(self) -> Choice:
        """The file of the source as somebody else leaves it."""
        dice, entries = self._dice, self._entries
        if entries and dice.chance(250):
            entries.pop(dice.below(len(entries)))
        if len(entries) < 8:
            entries.append({"id": f"q{self._called}", "status": "pending", "note": "from the file"})
            self._called += 1
        if dice.chance(400):
            status = dice.one(("pending", "parked", "cancelled", "drained", "draining"))
            dice.one(entries)["status"] = status
        return ("source", [dict(entry) for entry in entries])
