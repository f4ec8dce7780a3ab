"""The event log read again from its first line: who was in flight when, and under which policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fairlane.engine import decisions
from fairlane.engine.context import Context, parse_recorded
from fairlane.model.event import Event
from fairlane.model.project import PolicyText
from fairlane.model.task import Outcome, Task
from fairlane.policy.policy import Policy
from fairlane.store.base import Reading

ENDS = frozenset(str(outcome) for outcome in Outcome)
PAGE = 1000


def events_of(reading: Reading) -> list[Event]:
    """Every event that is kept, in order."""
    found: list[Event] = []
    while page := reading.events(after=found[-1].number if found else 0, limit=PAGE):
        found += page
    return found


def picks_of(context: Context) -> Iterator[tuple[str, Policy]]:
    """Every recorded start, in order, with the policy that allowed it."""
    policies: dict[str, Policy] = {}
    after = 0
    while page := decisions.listing(context, after, PAGE)["decisions"]:
        for row in page:
            if row["policy"] not in policies:
                with context.store.read() as reading:
                    text = reading.table(PolicyText)[row["policy"]].text
                policies[row["policy"]] = parse_recorded(text)
            for task in row["picks"]:
                yield task, policies[row["policy"]]
        after = page[-1]["decision"]


def violations(
    events: list[Event], picks: list[tuple[str, Policy]], tasks: dict[str, Task]
) -> list[str]:
    """Every ceiling that was exceeded, every second holder, every fence that did not grow."""
    found: list[str] = []
    flying: dict[str, Task] = {}
    fence, starts, numbers = 0, iter(picks), Counter[str]()
    for event in events:
        name = event.task or ""
        if event.kind == "leased":
            picked, policy = next(starts)
            data = event.data
            if picked != name:
                found.append(f"{event.number}: {name} was leased, {picked} was picked")
            if name in flying:
                found.append(f"{event.number}: {name} has two holders")
            numbers[name] += 1
            if data["attempt"] != numbers[name] or int(str(data["fence"])) <= fence:
                found.append(f"{event.number}: {name}, fence {data['fence']} after {fence}")
            fence = int(str(data["fence"]))
            flying[name] = tasks[name]
            found += [f"{event.number}: {each}" for each in exceeded(flying, name, policy)]
        elif event.kind in ENDS and name in flying:
            del flying[name]
        elif event.kind in ENDS and event.kind != "canceled" and not event.data.get("late"):
            found.append(f"{event.number}: {name} ended ({event.kind}) and was not in flight")
    return found


def exceeded(flying: dict[str, Task], started: str, policy: Policy) -> Iterator[str]:
    """What the last start was too much for."""
    task = flying[started]
    for cap in ("all", f"kind:{task.kind}", f"project:{task.project}"):
        limit = policy.caps.get(cap, policy.caps.get("project:*") if "project" in cap else None)
        held = sum(cap in scopes(each) for each in flying.values())
        if limit is not None and held > limit:
            yield f"{cap}: {held} of {limit}"
    wanted = locks(task)
    for name, other in flying.items():
        if name != started and wanted & locks(other):
            yield f"{started} and {name} both hold {wanted & locks(other)}"


def scopes(task: Task) -> tuple[str, ...]:
    return ("all", f"kind:{task.kind}", f"project:{task.project}")


def locks(task: Task) -> set[str]:
    """A task's locks; one that is not parallel holds its group and kind too."""
    serial = {f"{task.group}+{task.kind}"} if task.parallel is False and task.group else set()
    return {*task.locks, *serial}
