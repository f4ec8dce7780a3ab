"""The player: makes choices happen, one after the other; what does not fit any more is skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import Any

from fairlane.executors.base import Gone
from fairlane.testing.torture.history import Choice
from fairlane.testing.torture.stage import Strand
from fairlane.testing.torture.world import WITH_DAEMON, World

#: How many gates are passed, with no time between them, before that is a fault.
GATES_MAX = 5_000
#: The longest that a quiet world is watched, in steps, and how long nothing may change in it.
QUIET_STEPS, QUIET_SECONDS = 1_500, 9 * 86_400.0
#: Rules under which everything can end: no limit, and agents that do not go on for ever.
MILD = 'caps.all = 8\nattempt.timeout = "1h"\nshare.window = "1h"\n'


class Player:
    """Performs choices on a world, and counts."""

    def __init__(self, world: World) -> None:
        self.world, self.stage = world, world.stage
        self.events = self.crashes = 0
        self._gates = 0  # since time has passed

    def perform(self, choice: Choice) -> bool:
        """Make it happen; whether anything could be done."""
        what, *arguments = choice
        deed: Callable[..., bool] = getattr(self, f"_{what}")
        happened = deed(*arguments)
        self.events += happened
        return happened

    def strand(self, name: str) -> Strand | None:
        """A thread by its name, if it could go on now."""
        process = self.stage.processes.get(name.partition("/")[0])
        if process is None or process.frozen:
            return None
        ready = (strand for strand in process.strands if strand.name == name and strand.is_ready())
        return next(ready, None)

    # Threads and time

    def _go(self, name: str, order: str = "") -> bool:
        strand = self.strand(name)
        if strand is None:
            return False
        if order == "inside" and strand.gate == "write":
            self.crashes += 1
        self._pass(strand, order if strand.gate in ("read", "write", "share", "verify") else "")
        return True

    def _pass(self, strand: Strand, order: str = "") -> None:
        self.world.go(strand, order)
        self._gates += 1
        if self._gates > GATES_MAX:
            self.world.surprise(f"{strand.name} goes on and on while no time passes")

    def _settle(self, gates: int) -> bool:
        passed = 0
        while passed < gates and (ready := self.stage.ready()):
            for strand in ready:
                if passed < gates and not strand.ended and strand.is_ready():
                    self._pass(strand)
                    passed += 1
                if self.world.broken is not None:
                    return True
        self.events += max(0, passed - 1)
        return bool(passed)

    def _let_pass(self, seconds: float) -> bool:
        self.stage.let_pass(seconds)
        self._gates = 0
        return True

    # People, programs, daemons

    def _ask(self, name: str, host: str, operation: str, arguments: Mapping[str, Any]) -> bool:
        given = dict(arguments)
        if isinstance(given.get("lease"), int):
            lease = self._lease(given["lease"], pulled=True)
            if lease is None:
                return False
            given["lease"] = lease
        return self.world.ask(name, host, operation, given) is not None

    def _call(
        self, name: str, host: str, number: int, operation: str, arguments: Mapping[str, Any]
    ) -> bool:
        lease = self._lease(number, pulled=False)
        return lease is not None and (
            self.world.call(name, host, lease, operation, arguments) is not None
        )

    def _lease(self, number: int, pulled: bool) -> str | None:
        """One of the newest leases, counted from the last."""
        known = [lease for lease, executor in self.world.leases if (executor == "none") is pulled]
        return known[-1 - number] if number < len(known) else None

    def _up(self, host: str) -> bool:
        return self.world.up(host) is not None

    def _down(self, host: str, how: str) -> bool:
        daemon = self.world.daemons.get(host)
        if f"up-{host}" not in self.stage.processes or daemon is None:
            return False
        daemon.stop(how)
        return True

    # Faults

    def _kill(self, name: str) -> bool:
        process = self.stage.processes.get(name)
        if process is None:
            return False
        self.crashes += 1
        self.world.kill(process)
        return True

    def _freeze(self, name: str, seconds: float) -> bool:
        process = self.stage.processes.get(name)
        if process is None:
            return False
        process.frozen_until = self.stage.clock.elapsed + seconds
        return True

    def _clock(self, host: str, ahead: float, rate: float) -> bool:
        self.stage.hosts[host].set(ahead, rate)
        return True

    def _away(self, fault: str, seconds: float) -> bool:
        self.world.away = (fault, self.stage.clock.elapsed + seconds)
        return True

    def _rules(self, text: str) -> bool:
        self.world.write_rules(text)
        return True

    def _source(self, entries: list[dict[str, object]]) -> bool:
        self.world.write_source(entries)
        return True

    def _touch(self, task: str) -> bool:
        folder = self.world.folder / "artifacts" / task
        folder.mkdir(exist_ok=True)
        (folder / "out.txt").write_text("here", encoding="utf-8")
        return True

    def _die(self, number: int) -> bool:
        running = self.world.running()
        if not running:
            return False
        machine, run = running[number % len(running)]
        machine.kill(run)
        return True

    def _reboot(self, host: str) -> bool:
        machine = self.world.machines[host]
        for attempt in machine.attempts.values():
            machine.end(attempt, Gone())
        for process in [each for each in self.stage.processes.values() if each.host == host]:
            self.world.kill(process)
        self.crashes += 1
        return True

    def _tear(self, number: int) -> bool:
        running = self.world.running()
        if not running:
            return False
        _, run = running[number % len(running)]
        shutil.rmtree(run, ignore_errors=True)
        if number % 2:
            run.mkdir(parents=True)
            (run / "result.json").mkdir()
        return True

    # The end

    def _quiet(self) -> bool:
        """No more faults: everything that can end ends, and the checker looks for the rest."""
        world = self.world
        world.tame, world.away = True, ("", 0.0)
        for clock in self.stage.hosts.values():
            clock.set(0.0, 1.0)
        for process in self.stage.processes.values():
            process.frozen_until = 0.0
        world.write_rules(MILD)
        same_since, before = self.stage.clock.elapsed, -1
        for step in range(QUIET_STEPS):
            if world.broken is not None:
                return True
            self._keep_up()
            self._settle(GATES_MAX)
            newest = world.last_event()
            if newest != before:
                same_since, before = self.stage.clock.elapsed, newest
            quiet_for = self.stage.clock.elapsed - same_since
            if quiet_for > QUIET_SECONDS and not world.running():
                break
            self._let_pass(_step(quiet_for))
            self._end_endless(step)
        world.look_fully(settled=True)
        return True

    def _keep_up(self) -> None:
        for host in WITH_DAEMON:
            self.world.up(host)

    def _end_endless(self, step: int) -> None:
        """Agents that would never end by themselves vanish after a while."""
        if step % 50 == 49:
            for machine, run in self.world.running():
                if machine.attempts[run].script.seconds is None:
                    machine.kill(run)


def _step(quiet_for: float) -> float:
    """How long to wait for the next change: longer where nothing has changed for long."""
    return min(86_400.0, max(1.0, quiet_for))
