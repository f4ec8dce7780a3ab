"""Here: what this machine does beside an operation on its home folder, where no daemon does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.service.desk import Desk

#: What adds tasks: in direct mode they start at once.
ADDING = ("add", "group_add")
#: What takes in first what has ended on this machine.
TAKING_IN = ("lease", "reclaim")


def answer_here(
    desk: Desk, name: str, answer: Callable[[], dict[str, Any]], dry_run: bool = False
) -> dict[str, Any]:
    """The answer of an operation: ends are taken in before it, direct starts come with it."""
    adds = name in ADDING and not dry_run and desk.policy().capacity.mode == "direct"
    if not adds and name not in TAKING_IN:
        return answer()
    taken = take_in_before(desk, name)
    if adds:
        from fairlane.daemon.direct import add_and_start

        document = add_and_start(desk, answer)
    else:
        document = answer()
    start_after(desk, name, taken, document)
    return document


def take_in_before(desk: Desk, name: str) -> tuple[str, ...]:
    """What has ended here is taken in, if no daemon does it; the tasks."""
    from fairlane.service.holding import gone

    if not gone(desk):
        return ()
    from fairlane.daemon.collect import take_in

    return take_in(desk, desk.policy(), wait=name == "reclaim")


def start_after(desk: Desk, name: str, taken: tuple[str, ...], document: dict[str, Any]) -> None:
    """In direct mode what is ready by now starts; the answer to `reclaim` tells all of it."""
    policy = desk.policy()
    started: tuple[str, ...] = ()
    if policy.capacity.mode == "direct" and (taken or name == "reclaim"):
        from fairlane.daemon.collect import start_ready

        started = start_ready(desk, policy)
    if name == "reclaim":
        told = {"taken_in": list(taken), "started": list(started)}
        document |= {key: tasks for key, tasks in told.items() if tasks}
