"""Simulate: a workload under several policies, each in a process of its own; the operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairlane.model.errors import Invalid
from fairlane.policy.policy import Policy

if TYPE_CHECKING:
    from fairlane.engine.context import Context
    from fairlane.model.documents.simulation import SimulateAnswer
    from fairlane.simulation.run import Run
    from fairlane.simulation.worlds.described import Workload

#: How the rules that the home folder has are called beside others.
IN_FORCE = "in force"
#: Most policies that one call compares.
POLICIES_MAX = 20


class Order(NamedTuple):
    """One simulation to be made: plain values alone, so that another process can make it."""

    workload: Mapping[str, object]
    title: str
    policy: Mapping[str, object]
    name: str  # of the policy
    seed: int


def simulate(
    context: Context,
    workload: Mapping[str, object],
    policies: Sequence[str | Mapping[str, object]] | None = None,
    seed: int = 1,
    days: int | None = None,
    name: str = "workload",
) -> SimulateAnswer:
    """What each policy would make of a described workload; changes nothing."""
    orders = orders_of(context.policy, workload, policies, seed, days, name)
    if len(orders) == 1:
        return answer_here(orders[0])
    from fairlane.simulation import report
    from fairlane.simulation.apart import Apart

    return report.together(Apart().answers(orders))


def orders_of(
    in_force: Callable[[], Policy],
    workload: Mapping[str, object],
    policies: Sequence[str | Mapping[str, object]] | None = None,
    seed: int = 1,
    days: int | None = None,
    name: str = "workload",
) -> list[Order]:
    """One order a policy, in their order; the workload and all policies are checked.

    `name` is what errors call the workload, and the answer where it has no title.
    """
    described = dict(workload) if days is None else {**workload, "days": days}
    title = _world(described, name).title or name
    if policies is not None and not 1 <= len(policies) <= POLICIES_MAX:
        raise Invalid(f"policies: {len(policies)} entries", f"Give 1 to {POLICIES_MAX}.")
    named = [(IN_FORCE, in_force())] if policies is None else [*map(_named, policies)]
    return [Order(described, title, policy.document(), own, seed) for own, policy in named]


def _named(given: str | Mapping[str, object]) -> tuple[str, Policy]:
    """A policy with its name: a preset, or rules that the caller gives."""
    if isinstance(given, str):
        return given, Policy.preset(given)
    title, rules = given.get("name", "policy"), given.get("policy")
    if not isinstance(title, str) or not isinstance(rules, Mapping):
        hint = 'Give the name of a preset, or {"name": "mine", "policy": {"caps.all": 8}}.'
        raise Invalid("policies: not a policy", hint)
    return title, Policy.parse(rules, title)


def run_all(orders: Sequence[Order]) -> list[Run]:
    """The runs, in the order of their orders; several are made in processes of their own."""
    if len(orders) == 1:
        return [run_here(orders[0])]
    from fairlane.simulation.apart import Apart

    return Apart().run(orders)


def run_here(order: Order) -> Run:
    """One simulation, in this process."""
    from fairlane.simulation.fast import simulate

    world = _world(order.workload, order.title)
    policy = Policy.parse(order.policy, order.name)
    return simulate(world, policy, order.seed, name=order.name)


def answer_here(order: Order) -> SimulateAnswer:
    """The answer about one simulation, in this process."""
    from fairlane.simulation import report

    return report.answer(order.title, [run_here(order)])


def trace_of(order: Order, run: Run) -> Iterator[str]:
    """The lines of a trace that repeats the run of an order."""
    from fairlane.simulation.worlds import trace_writer

    return trace_writer.trace_of(_world(order.workload, order.title), run)


def _world(workload: Mapping[str, object], name: str) -> Workload:
    from fairlane.simulation.worlds.workload import parse_workload

    return parse_workload(workload, name)
