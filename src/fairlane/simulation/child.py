"""The process of one simulation: an order on standard input, its run on standard output."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from fairlane.model.errors import FairlaneError
from fairlane.simulation.apart import packed
from fairlane.simulation.simulate import Order, run_here


def main() -> None:
    """Make it; when the input ends, whoever asked is gone, and so is this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal, for the process that asked
    order = Order(*json.loads(sys.stdin.buffer.readline()))
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        answer = packed(run_here(order))
    except FairlaneError as error:
        answer = {"error": error.document()["error"], "invalid": error.exit_code == 2}
    json.dump(answer, sys.stdout)


def _end_with_input() -> None:
    """Wait without a lock that the end of this process would need."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
