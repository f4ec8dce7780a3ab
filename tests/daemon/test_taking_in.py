"""What has ended while no daemon was there is taken in by whoever comes, and never called lost."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from fairlane.app import open_context
from fairlane.clock import FixedClock
from fairlane.model.instant import SECOND, show_instant
from tests import holder
from tests.daemon.world import World, is_zombie, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def exit_file(world: World, task: str) -> Path:
    return world.home / "runs" / task / "1" / "exit.json"


def after_expiry(world: World, task: str) -> int:
    """A time at which the lease of its first attempt has run out."""
    return int(world.attempts(task)[0].expires_at + SECOND)


def outcomes(world: World, task: str) -> list[str | None]:
    return [attempt.outcome for attempt in world.attempts(task)]


def wait_for_pid(world: World, task: str) -> None:
    until(lambda: world.attempts(task)[0].handle is not None)


def finished_without_daemon(world: World, *names: str) -> None:
    """Agents that ended, each with its exit on disk, after their daemon was killed."""
    gate = world.home / "gate"
    wait = f'while [ ! -e "{gate}" ]; do sleep 0.05; done;'
    world.add(*(world.marking(name, 0.0, more=wait) for name in names))
    pid = world.up()
    for name in names:
        world.started(name)
        wait_for_pid(world, name)
    world.kill(pid)
    gate.touch()
    for name in names:
        until(exit_file(world, name).exists)


def forget_process(world: World, task: str) -> None:
    """As if the daemon had died between the launch and the note of its process."""
    with world.context() as context, context.store.write() as tx:
        tx.put_attempts([replace(world.attempts(task)[0], handle=None)])


@pytest.mark.parametrize("known", [True, False], ids=["pid-known", "pid-not-stored"])
@pytest.mark.parametrize("command", ["reclaim", "lease"])
def test_a_success_on_disk_is_taken_in_and_not_lost(
    world: World, command: str, known: bool
) -> None:
    finished_without_daemon(world, "a")
    if not known:
        forget_process(world, "a")
    late = show_instant(after_expiry(world, "a"))
    world.fairlane(command, "--now", late)
    assert world.statuses() == {"a": "done"}
    assert outcomes(world, "a") == ["succeeded"]


def test_no_round_reclaims_what_has_ended_and_commit_renews_it(world: World) -> None:
    finished_without_daemon(world, "a")
    late = after_expiry(world, "a")
    context = open_context(world.home, clock=FixedClock(late))
    try:
        assert holder.reclaim(context)["reclaimed"] == []
        assert holder.lease(context)["leases"] == []
    finally:
        context.store.close()
    assert world.statuses() == {"a": "running"}
    assert world.attempts("a")[0].expires_at > late
    world.run()
    assert outcomes(world, "a") == ["succeeded"]


def test_a_process_whose_number_was_not_stored_is_not_lost(world: World) -> None:
    world.add(world.marking("a", 60.0))
    pid = world.up()
    world.started("a")
    wait_for_pid(world, "a")
    world.kill(pid)
    world.runner("a")
    forget_process(world, "a")
    late = show_instant(after_expiry(world, "a"))
    assert world.fairlane("reclaim", "--now", late)["reclaimed"] == []
    assert outcomes(world, "a") == [None]


def test_a_process_that_is_gone_without_a_word_is_lost_at_once(world: World) -> None:
    world.policy('retry.base = "1h"\nretry.jitter = 0\n')
    world.add(world.marking("a", 60.0))
    pid = world.up()
    world.started("a")
    wait_for_pid(world, "a")
    told = world.runner("a")
    world.kill(pid)
    os.kill(told["pid"], signal.SIGKILL)
    until(lambda: is_zombie(told["pid"]))
    world.fairlane("reclaim")
    assert outcomes(world, "a") == ["lost"]
    assert world.processes() == []


def test_what_was_never_launched_is_lost_and_a_late_runner_starts_nothing(world: World) -> None:
    world.add(world.marking("a", 0.0))
    world.fairlane("lease", "--limit", "1")
    with world.context() as context, context.store.write() as tx:
        mine = replace(world.attempts("a")[0], executor="process", host=os.uname().nodename)
        tx.put_attempts([mine])
    late = show_instant(after_expiry(world, "a"))
    assert world.fairlane("reclaim", "--now", late)["reclaimed"] == ["a"]
    assert (world.home / "runs" / "a" / "1" / "revoked").exists()


def test_a_success_after_its_lease_was_called_lost_is_a_late_success(world: World) -> None:
    world.policy('retry.base = "1h"\nretry.jitter = 0\n')
    gate = world.home / "gate"
    world.add(world.marking("a", 0.0, more=f'while [ ! -e "{gate}" ]; do sleep 0.05; done;'))
    world.up()
    world.started("a")
    wait_for_pid(world, "a")
    with world.context() as context, context.store.write() as tx:  # as if another machine had it
        tx.put_attempts([replace(world.attempts("a")[0], host="elsewhere")])
    context = open_context(world.home, clock=FixedClock(after_expiry(world, "a")))
    try:
        assert holder.reclaim(context)["reclaimed"] == ["a"]
    finally:
        context.store.close()
    assert world.statuses() == {"a": "queued"}
    gate.touch()
    until(lambda: world.statuses() == {"a": "done"})
    assert outcomes(world, "a") == ["succeeded"]
