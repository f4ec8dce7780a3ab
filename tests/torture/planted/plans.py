"""Planted bugs: what may start, and which of it starts first."""

from __future__ import annotations

from fairlane.engine import round
from fairlane.model.task import Lane
from fairlane.planner.gates import caps, cooldown, paused
from fairlane.planner.order import Share
from fairlane.planner.round import Round, Workers
from fairlane.planner.rules import Rules
from tests.torture.planted.bug import Bug, bug, line

#: Those that have started before.
FLYING = "{flight.task for flight in round.snapshot.in_flight}"
#: Of groups a lane's own, and everything else.
OWN = 'scope[6:] == lane.group or scope[:6] != "group:"'

BUGS: list[Bug] = [
    bug(
        "cap counted late",
        "What a round picks counts under its caps only in the next round.",
        "caps",
        line(
            caps.check,
            (
                "if len(holders[scope]) >= limit:",
                f"if len({FLYING} & holders[scope].keys()) >= limit:",
            ),
        ),
    ),
    bug(
        "share clock moved twice",
        "A start moves the clock of its project by its charge, and then once more.",
        "clocks follow, everyones clock, furthest behind first",
        line(Share.take, ("charge(estimate, weight))", "2 * charge(estimate, weight))")),
    ),
    bug(
        "clock of who comes back",
        "A project that was away keeps its old clock, and takes all slots until it has caught up.",
        "clocks follow, furthest behind first, bound",
        line(Share.arrive, ("if weight and not self.present[name]", "if not weight")),
    ),
    bug(
        "pause of a parent group",
        "A pause holds a group, and not the groups under it.",
        "pauses",
        line(
            paused.check,
            (
                "if scope in pauses:",
                f"if scope in pauses and ({OWN}):",
            ),
        ),
    ),
    bug(
        "serial by default",
        "Only a task that says so itself is serial, whatever the policy's default is.",
        "locks",
        line(Rules.locks, ("if parallel or", "if shape.parallel is not False or")),
    ),
    bug(
        "workspace given twice",
        "Only a workspace that its task asked for counts as taken.",
        "workspaces",
        line(Round._enter, ("if workspace is not None:", "if lane.workspace is not None:")),
    ),
    bug(
        "probe lets everybody through",
        "A probe counts only from the next round on.",
        "cooldowns",
        line(
            Round.take, ("if rules.pool in self.resting:", "if rules.pool in self.ledger.probes:")
        ),
    ),
    bug(
        "cooldown ends early",
        "A pool is tried as soon as nothing of it runs, whatever its provider asked for.",
        "cooldowns",
        line(
            cooldown.check,
            (
                "pool.until > round.now:",
                'pool.until > round.now and round.ledger.holders[f"pool:{pool.name}"]:',
            ),
        ),
    ),
    bug(
        "batch by the round",
        "As many start in each round as the batch allows in a whole interval.",
        "batch",
        line(Round._batch, ("max(0, batch - self.snapshot.batch_started)", "batch")),
    ),
    bug(
        "labels of a worker",
        "Where one worker alone is asked for its labels are not looked at.",
        "places",
        line(
            Workers.fitting,
            (
                "needed.issubset(worker.labels)",
                "len(self.live) == 1 or needed.issubset(worker.labels)",
            ),
        ),
    ),
    bug(
        "rules of a caller",
        "Whoever pulls work goes on with the last good policy when the file is broken.",
        "fails closed",
        line(
            round._policy,
            ('context.policy() if asker.executor == "none" else ', ""),
        ),
    ),
    bug(
        "order by the wrong time",
        "Inside a lane the time counts since which a task is ready, whatever the policy says.",
        "first in first out, nobody overdue is overtaken",
        line(Lane.in_order, ('age_from == "created"', 'age_from == ""')),
    ),
]
