"""A world with something of everything; run as a program it prints the digest of its run."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from fairlane.engine.context import Context
from fairlane.model.codec import canonical, digest, encode
from fairlane.model.instant import HOUR, MINUTE, SECOND, Micros, show_instant
from fairlane.model.task import Outcome, Task
from fairlane.policy.policy import Policy
from fairlane.service import projects
from fairlane.simulation.draws import below, draw, which
from fairlane.simulation.engine import simulate
from fairlane.simulation.provider import Limits, Outage, Quota
from fairlane.simulation.run import Run
from fairlane.simulation.world import Act, Arrival, Fate, Shift
from tests.unit.simulation.fixed import BEGIN, FixedWorld, arrival

ENDS = (
    Outcome.FAILED, Outcome.LOST, Outcome.LAUNCH_FAILED, Outcome.THROTTLED, Outcome.ENVIRONMENT,
    Outcome.RELEASED, Outcome.CHECK_FAILED, Outcome.CANCELED,
)  # fmt: skip
NAMES = ("web", "api", "docs", "ops")


class Rich(FixedWorld):
    """Everything is drawn: what comes, what it waits for, how it ends."""

    def __init__(self, tasks: int = 80) -> None:
        outage = Outage(BEGIN + HOUR, BEGIN + HOUR + 10 * MINUTE)
        super().__init__(
            weights={"web": 3, "api": 2, "docs": 1},
            limits={
                "demo": Limits((Quota(MINUTE, requests=9), Quota(HOUR, tokens=900_000)), (outage,)),
                "openai": Limits((Quota(2 * HOUR, tokens=400_000, resets=True),)),
            },
            crew=[
                *(Shift(BEGIN + n * HOUR, "night", 3 * (n % 2)) for n in range(9)),
                Shift(BEGIN, "day", 4, ("gpu",)),
                Shift(BEGIN + 50 * MINUTE, "day", 0, sudden=True),
                Shift(BEGIN + 70 * MINUTE, "day", 5, ("gpu", "big")),
            ],
            people=[
                Act(BEGIN + 10 * MINUTE, "pause", {"scope": "project:web"}),
                Act(BEGIN + 20 * MINUTE, "cancel", {"ids": ["t7", "t8"]}),
                Act(BEGIN + 25 * MINUTE, "resume", {"scope": "project:web"}),
            ],
        )
        self.tasks = tasks

    def prepare(self, context: Context) -> None:
        super().prepare(context)
        keys = {"workspaces": ["one", "two"], "max_in_flight": 2, "weight": 4}
        projects.add_project(context, "ops", keys)

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        at: Micros = 0
        for number in range(self.tasks):
            at += below(2 * MINUTE, draw(seed, "gap", number))
            yield arrival(at, self.record(seed, number))

    def record(self, seed: int, number: int) -> dict[str, object]:
        drawn = below(1000, draw(seed, "record", number))
        row: dict[str, object] = {"id": f"t{number}", "project": NAMES[drawn % 4]}
        row["agent"] = "codex" if drawn % 5 == 0 else "demo"
        row["kind"] = ("code", "review", "plan")[drawn % 3]
        more: list[dict[str, object]] = [
            {}, {"locks": ["db"]}, {"labels": ["gpu"]}, {"group": "g", "parallel": False},
            {"needs": [f"t{number // 2}"]} if number else {}, {"priority": drawn % 7},
            {"checks": [["true"]]}, {"estimate_tokens": drawn * 100},
            {"not_before": show_instant(BEGIN + 90 * MINUTE)},
        ]  # fmt: skip
        return row | more[drawn % 9]

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        lasts = 1 + below(12 * MINUTE, draw(seed, task.id, attempt, "lasts"))
        end = which([60_000] * len(ENDS), draw(seed, task.id, attempt, "end"))
        tokens = below(60_000, draw(seed, task.id, attempt, "tokens"))
        return Fate(
            lasts=lasts,
            outcome=Outcome.SUCCEEDED if end is None else ENDS[end],
            tokens=(tokens, tokens // 9, 5 * tokens, 0),
            usd=tokens * 3,
            retry_after=40 * SECOND,
            reports=tokens % 4,
        )


def rules() -> Policy:
    """Something of every rule."""
    budgets = [
        {"scope": "project:api", "tokens": 300_000, "window": "2h"},
        {"scope": "all", "usd": "3.00", "window": "3h", "on_exceeded": "stop"},
    ]
    caps = {"caps.all": 7, "caps.kind:review": 2, "overdue.after": "15m"}
    return Policy.preset("balanced", {**caps, "budget": budgets, "retry.base": "20s"})


def rich_run(seed: int = 5) -> Run:
    return simulate(Rich(), rules(), seed)


if __name__ == "__main__":
    sys.stdout.write(digest(canonical(encode(rich_run()))))
