"""The process of one simulation: an order on standard input, its run or answer on output."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from fairlane.model.errors import FairlaneError, Refused
from fairlane.simulation.apart import packed
from fairlane.simulation.simulate import Order, answer_here, run_here

#: So long may a simulation of a server compute: a caller that is cut off may never hang up.
CPU_SECONDS = 3600


def main() -> None:
    """Make it; when the input ends, whoever asked is gone, and so is this process.

    Its argument: what is wanted, `run` or `answer`.
    """
    (wanted,) = sys.argv[1:]
    _be_killed_first()
    if wanted == "answer":
        signal.signal(signal.SIGXCPU, _give_up)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, resource.RLIM_INFINITY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal, for the process that asked
    order = Order(*json.loads(sys.stdin.buffer.readline()))
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        answer = packed(run_here(order)) if wanted == "run" else {**answer_here(order)}
    except FairlaneError as error:
        answer = _error(error)
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    json.dump(answer, sys.stdout)


def _error(error: FairlaneError) -> dict[str, object]:
    return {"error": error.document()["error"], "invalid": error.exit_code == 2}


def _end_with_input() -> None:
    """Wait without a lock that the end of this process would need."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def _give_up(*_: object) -> NoReturn:
    """Answer at once: an exception would come in the middle of whatever is done now."""
    hint = "Simulate fewer days or tasks, or fewer reports of attempts."
    error = Refused(f"the simulation took more than {CPU_SECONDS} s of a processor", hint)
    os.write(sys.stdout.fileno(), json.dumps(_error(error)).encode())
    os._exit(0)


def _be_killed_first() -> None:
    """Where memory runs out, the simulation ends, and no daemon or agent beside it."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


if __name__ == "__main__":
    main()
