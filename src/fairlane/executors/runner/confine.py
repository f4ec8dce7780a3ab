"""What holds an agent: bubblewrap around it, Landlock upon it, and limits on what it uses."""

from __future__ import annotations

import contextlib
import json
import os
import signal

from .cgroup import Group
from .tree import send, usage

TYPE_CHECKING = False  # `typing` itself would take longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable

    from .files import Sandbox


class Unconfined(OSError):
    """The sandbox that was asked for cannot be had: nothing is started."""


class Confinement:
    """How the agent of these orders is started, stopped and limited."""

    def __init__(self, sandbox: Sandbox | None) -> None:
        self._sandbox = sandbox
        self.limit = ""  # which one ended it
        self._status: int | None = None  # where bubblewrap tells what it did
        self._told = b""
        self._tell = self._rules = self._filter = -1
        self._group: Group | None = None

    @property
    def is_wrapped(self) -> bool:
        """Whether the agent runs inside bubblewrap."""
        return self._sandbox is not None and self._sandbox["kind"] == "bwrap"

    @property
    def is_watched(self) -> bool:
        """Whether somebody must look at what it uses."""
        box = self._sandbox
        return box is not None and (box["memory"] is not None or box["processes"] is not None)

    def prepare(self, argv: list[str]) -> tuple[list[str], Callable[[], None] | None, list[int]]:
        """The command line, what the new process does first, and the descriptors it gets."""
        box = self._sandbox
        if box is None:
            return argv, None, []
        # Few runners need them, and they take as long to import as a tenth of all the others.
        from . import keys, restrictions

        self._group = Group(".")
        self._group.limit(box["memory"], box["processes"])
        if box["kind"] == "landlock":
            self._rules = restrictions.ruleset(box["read"], box["write"])
        if not self.is_wrapped:
            return argv, self._restrict, []
        self._status, self._tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._filter = keys.descriptor()
        words = [*box["words"], "--json-status-fd", str(self._tell)]
        words += ["--seccomp", str(self._filter)] if self._filter >= 0 else []
        given = [each for each in (self._tell, self._filter) if each >= 0]
        return [*words, "--", *argv], self._restrict, given

    def started(self) -> None:
        """The agent has what it needs from here."""
        for each in (self._tell, self._rules, self._filter):
            if each >= 0:
                os.close(each)

    def send(self, number: int, group: int) -> None:
        """A signal for the agent and its group; bubblewrap itself is killed, all else with it."""
        if not self.is_wrapped or number == signal.SIGKILL:
            send(number, group=group)
        elif agent := self._inside():
            with contextlib.suppress(ProcessLookupError):
                send(number, group=os.getpgid(agent))

    def over(self, server: int) -> bool:
        """Whether all its processes together use more than they may; `server` is none of them."""
        box = self._sandbox
        if box is None or self.limit or self._stopped_by_kernel(box):
            return bool(self.limit)
        processes, memory = usage(server)
        if box["memory"] is not None and memory > box["memory"]:
            self.limit = f"memory: {memory >> 20} MiB in use, {box['memory'] >> 20} MiB allowed"
        elif box["processes"] is not None and processes > box["processes"]:
            self.limit = f"processes: {processes} at once, {box['processes']} allowed"
        return bool(self.limit)

    def ended(self, code: int, stopped: str, errors: str) -> dict[str, object]:
        """What its end says of the sandbox: it could not be made, or a limit was reached."""
        box = self._sandbox
        if box is None:
            return {}
        if code > 0 and not stopped and self._never_began():
            return _not_made(errors)
        if box["cpu"] is not None and code in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
            self.limit = f"cpu: {box['cpu']} s of CPU time in one process"
        return {"limit": self.limit}

    def kill(self) -> None:
        """Nothing of the agent stays where the kernel knows what belongs to it."""
        if self._group is not None and self._sandbox is not None:
            self._stopped_by_kernel(self._sandbox)
            self._group.end()

    def close(self) -> None:
        """Its temporary files are of no use to anybody."""
        if self._sandbox is not None and self._sandbox["temporary"]:
            import shutil  # few runners need it, and it takes as long as a third of the others

            shutil.rmtree(self._sandbox["temporary"], ignore_errors=True)

    def _stopped_by_kernel(self, box: Sandbox) -> bool:
        """Whether the kernel refused what a limit does not allow."""
        ran_out = "" if self._group is None or self.limit else self._group.ran_out()
        if ran_out == "memory":
            self.limit = (
                f"memory: the kernel gave no more, {(box['memory'] or 0) >> 20} MiB allowed"
            )
        elif ran_out:
            self.limit = f"processes: the kernel made no more, {box['processes']} allowed"
        return bool(ran_out)

    def _never_began(self) -> bool:
        """Whether bubblewrap ended without having started the agent."""
        told = self._records() if self.is_wrapped else [{"exit-code": 0}]
        return not any("exit-code" in record for record in told)

    def _restrict(self) -> None:
        """In the new process, before it becomes the agent."""
        box = self._sandbox
        assert box is not None
        assert self._group is not None
        self._group.join()
        from .restrictions import lower_limits, restrict

        lower_limits(box["files"], box["cpu"])
        if self._rules >= 0:
            restrict(self._rules)

    def _inside(self) -> int:
        """The agent: the first child of the first process inside; 0: not there yet."""
        first = next(
            (record["child-pid"] for record in self._records() if "child-pid" in record), 0
        )
        with contextlib.suppress(OSError), open(f"/proc/{first}/task/{first}/children") as file:
            return int((file.read().split() or ["0"])[0])
        return 0

    def _records(self) -> list[dict[str, int]]:
        """What bubblewrap has told so far."""
        with contextlib.suppress(OSError):
            while self._status is not None and (more := os.read(self._status, 4096)):
                self._told += more
        records = []
        for line in self._told.splitlines():
            with contextlib.suppress(ValueError):
                records.append(json.loads(line))
        return records


def _not_made(errors: str) -> dict[str, object]:
    """Bubblewrap ended before the agent began: something is missing here, or the program."""
    said = next(
        (line for line in errors.splitlines() if line.startswith("bwrap: ")), "bwrap failed"
    )
    if said.startswith("bwrap: execvp "):
        return {"launch_error": said.removeprefix("bwrap: execvp "), "errno": 0}
    return {"launch_error": f"the sandbox cannot be made: {said}", "errno": 0, "environment": True}
