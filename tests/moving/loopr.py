"""loopr homes for tests, and what loopr itself would run next, written from its document."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

NOW_MS = 1_769_774_400_000  # 2026-01-30T12:00:00Z
TYPES = ("plan", "spec", "phase", "code")
STATUSES = ("pending", "pending", "pending", "complete", "complete", "running", "paused",
            "rebasing", "failed", "invalidated")  # fmt: skip
ODD = ("Größe prüfen", "修正する", "tab\there", 'a "quoted" one', "line\none", "emoji 🙂")
#: The configuration of the document.
PRIORITY = {
    "plan": 40, "spec": 60, "phase": 80, "code": 100, "age_boost_per_minute": 1,
    "age_boost_max": 50, "depth_boost_per_level": 10, "retry_penalty_per_iteration": 5,
    "retry_penalty_max": 30,
}  # fmt: skip

Loop = dict[str, Any]


@dataclass
class LooprHome:
    """What one home holds."""

    folder: Path
    loops: dict[str, Loop] = field(default_factory=dict)  # those that are whole
    broken: int = 0  # lines that are no loop
    priority: dict[str, int] = field(default_factory=dict)
    max_loops: int = 50
    max_api_calls: int = 10
    per_type: dict[str, int] = field(default_factory=dict)

    def write(self, lines: list[str], end: str) -> None:
        """The files."""
        (self.folder / "prompts").mkdir(parents=True)
        for name in TYPES:
            text = f"Do the {name}: {{{{task}}}}{end}"
            (self.folder / "prompts" / f"{name}.md").write_text(text, "utf-8", newline="")
        rules = {
            "scheduler": {"poll_interval_secs": 1, "priority": self.priority},
            "concurrency": {
                "max_loops": self.max_loops,
                "max_api_calls": self.max_api_calls,
                "per_type": self.per_type,
            },
        }
        (self.folder / "loopr.yml").write_text(json.dumps(rules), "utf-8")  # JSON is YAML
        text = end.join(lines)
        (self.folder / "loops.jsonl").write_text(text, "utf-8", newline="")


def made(folder: Path, seed: int, size: int = 40) -> LooprHome:
    """A home: a forest of loops with odd names, old versions, orphans and a line half written."""
    random = Random(seed)
    home = LooprHome(folder)
    home.priority = {key: random.choice((value, value + 7)) for key, value in PRIORITY.items()}
    home.max_loops, home.max_api_calls = random.randint(1, 50), random.randint(1, 30)
    home.per_type = {kind: random.randint(0, 9) for kind in TYPES if random.random() < 0.6}
    lines: list[str] = []
    for at in range(size):
        loop = _loop(random, at, list(home.loops.values()), folder)
        if random.random() < 0.2:  # an older version of it
            lines.append(json.dumps(loop | {"status": "pending", "updated_at": NOW_MS - 10**7}))
        lines.append(json.dumps(loop, ensure_ascii=random.random() < 0.5))
        home.loops[loop["id"]] = loop
    if random.random() < 0.5:
        lines.append("")
    if random.random() < 0.5:
        lines.append('{"id": "half", "loop_type": "co')
        home.broken = 1
    home.write(lines, random.choice(("\n", "\r\n")))
    return home


def _loop(random: Random, at: int, before: list[Loop], folder: Path) -> Loop:
    parent = random.choice(before)["id"] if before and random.random() < 0.7 else None
    if random.random() < 0.05:
        parent = f"gone-{at}"
    created = NOW_MS - random.randrange(0, 90 * 60_000)
    loop: Loop = {
        "id": f"17383008{at:05}-{random.randrange(1 << 16):04x}",
        "loop_type": random.choice(TYPES),
        "parent_id": parent,
        "output_artifacts": [],
        "status": random.choice(STATUSES),
        "iteration": random.randint(0, 9),
        "max_iterations": random.choice((20, 50, 100)),
        "created_at": created,
        "updated_at": created + 60_000,
        "context": {"task": random.choice(ODD)},
        "prompt_path": "",
    }
    loop["prompt_path"] = f"prompts/{loop['loop_type']}.md"
    if random.random() < 0.3:
        name = f"artifacts/{at}.md"
        loop["input_artifact"] = name if random.random() < 0.5 else str(folder / name)
        if random.random() < 0.5:
            (folder / "artifacts").mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("here")
    if random.random() < 0.2:
        loop["worktree"] = "/srv/trees/x"
    if random.random() < 0.2:
        del loop["output_artifacts"], loop["max_iterations"]
    return loop


# The scheduler of the document


def depth(home: LooprHome, loop: Loop) -> int:
    """`calculate_depth`."""
    count, parent = 0, loop["parent_id"]
    while parent is not None:
        count += 1
        above = home.loops.get(parent)
        parent = above["parent_id"] if above else None
    return count


def priority(home: LooprHome, loop: Loop, now_ms: int) -> int:
    """`calculate_priority`, with the numbers of the configuration."""
    rules = home.priority
    minutes = (now_ms - loop["created_at"]) // 60_000
    points: int = rules[loop["loop_type"]]
    points += min(minutes * rules["age_boost_per_minute"], rules["age_boost_max"])
    points += depth(home, loop) * rules["depth_boost_per_level"]
    failed: int = max(0, loop["iteration"] - 1) * rules["retry_penalty_per_iteration"]
    return points - min(failed, rules["retry_penalty_max"])


def is_runnable(home: LooprHome, loop: Loop) -> bool:
    """`is_runnable`: pending, its parent complete, its artifact there."""
    if loop["status"] != "pending":
        return False
    if loop["parent_id"] is not None:
        parent = home.loops.get(loop["parent_id"])
        if parent is None or parent["status"] != "complete":
            return False
    artifact = loop.get("input_artifact")
    return artifact is None or (home.folder / artifact).exists()


def select(home: LooprHome, now_ms: int, running: list[Loop]) -> list[str]:
    """`select`, with two differences on purpose: a limit of a type counts what runs already, and
    calls of the API bound how many run. Of equal ones the older goes first.
    """
    slots = min(home.max_loops, home.max_api_calls) - len(running)
    runnable = [loop for loop in home.loops.values() if is_runnable(home, loop)]
    runnable.sort(key=lambda loop: (-priority(home, loop, now_ms), loop["created_at"]))
    counts = {kind: sum(one["loop_type"] == kind for one in running) for kind in TYPES}
    selected: list[str] = []
    for loop in runnable:
        kind = loop["loop_type"]
        if len(selected) < slots and counts[kind] < home.per_type.get(kind, 1 << 60):
            counts[kind] += 1
            selected.append(loop["id"])
    return selected


def orphans(home: LooprHome) -> set[str]:
    """Loops whose parent, or an ancestor of it, is not there."""
    out: set[str] = set()
    for name, loop in home.loops.items():
        here: Loop | None = loop
        while here is not None and here["parent_id"] is not None:
            here = home.loops.get(here["parent_id"])
        if here is None:
            out.add(name)
    return out
