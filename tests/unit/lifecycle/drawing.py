"""The transition table as a page for people; `docs/lifecycle.md` is what this gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.lifecycle.transitions import TRANSITIONS, Rule

if TYPE_CHECKING:
    from fairlane.model.event import Happening
    from fairlane.model.task import Status

_HEAD = """\
# The life of a task

Drawn from the transition table in `src/fairlane/lifecycle/transitions.py`; a test fails if they
differ. Whatever is not in it is refused, with the task's last events. *Ready* and *blocked* are
not statuses: the planner computes them.
"""

_FOOT = """\
## What counts

- `failures` counts attempts that failed, could not be launched or were lost since the last
  `retry`; when it reaches `retry.max_attempts` the task is parked. Throttled, environment and
  released attempts are not counted and keep the task's place (`ready_since`).
- Launch failures in a row that reach `breaker.launch_failures` park a task though attempts are
  left. An attempt that was launched ends the row. Where `breaker.half_open_after` is set, a task
  that launch failures alone have parked is tried once more after that time; if that fails too,
  it stays parked.
- The wait after failure n is min(cap, base · factor^(n−1) · (1 ± jitter)); the jitter follows
  from the task's id and the attempt's number. Environment outcomes in a row wait in the same way;
  the first release does not wait, the second waits as after a first failure.
- A throttle cools the task's pool down. A task without a pool waits itself: as long as the provider
  asked (at most eight days), and at least `cooldown.base` · 2^(n−1) after the n-th in a row.
- The same `cooldown.base` · 2^(n−1) is the least wait after launch failures, environment outcomes
  and repeated releases in a row, so that `retry.base = "0s"` tries only failed work again at once.
- Another outcome ends a row of environment outcomes, throttles or releases; a start alone does not.
- While a cancel is asked for, every end but a success is `canceled`. An end that a timeout caused
  is `failed`, one that a budget caused is `released`.
"""


def page() -> str:
    """The whole page: diagram, table, and what the counters mean."""
    return f"{_HEAD}\n{diagram()}\n{table()}\n{_FOOT}"


def diagram() -> str:
    """The table as a Mermaid diagram."""
    edges: dict[tuple[Status, Status], list[str]] = {}
    for (status, happening), rule in TRANSITIONS.items():
        for to in rule.to or (status,):
            edges.setdefault((status, to), []).append(str(happening))
    lines = [
        f"    {status} --> {to}: {', '.join(happenings)}"
        for (status, to), happenings in edges.items()
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> queued: add", *lines, "```\n"])


def table() -> str:
    """The table, one row for each happening and what it does."""
    merged: dict[tuple[Happening, Rule], list[str]] = {}
    for (status, happening), rule in TRANSITIONS.items():
        merged.setdefault((happening, rule), []).append(str(status))
    rows = [
        f"| {', '.join(statuses)} | `{happening}` | {_goals(rule)} | {rule.text} |"
        for (happening, rule), statuses in merged.items()
    ]
    head = ["| in status | happens | then | |", "|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def _goals(rule: Rule) -> str:
    return " or ".join(map(str, rule.to)) or "as it is"
