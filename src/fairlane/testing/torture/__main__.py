"""`python -m fairlane.testing.torture`: crash everything, for as long as you like."""

from __future__ import annotations

import argparse
import math
import sys

from fairlane.testing.torture.run import torture
from fairlane.testing.torture.stores import STORES


def main() -> int:
    """Torture a store, say what came of it; 1 if a promise broke."""
    parser = argparse.ArgumentParser(prog="python -m fairlane.testing.torture", description=__doc__)
    parser.add_argument("--seed", type=_seed, default=1, help="the first history's seed (1)")
    parser.add_argument("--minutes", type=_length, help="for how long")
    parser.add_argument("--hours", type=_length, help="for how long")
    parser.add_argument("--events", type=_count, help="how many events, instead of a time")
    parser.add_argument("--store", choices=sorted(STORES), default="memory")
    parser.add_argument("--jobs", type=_count, default=2, help="processes (2)")
    given = parser.parse_args()
    seconds = None
    if given.hours is not None or given.minutes is not None:
        seconds = 3600 * (given.hours or 0.0) + 60 * (given.minutes or 0.0)
    elif given.events is None:
        seconds = 60.0
    report = torture(
        given.store, given.seed, given.events, seconds=seconds, jobs=given.jobs, say=_say
    )
    for line in report.lines():
        _say(line)
    return 0 if report.failed is None else 1


def _length(text: str) -> float:
    number = float(text)
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def _seed(text: str) -> int:
    number = int(text)
    if number < 0:  # it is in the name of the test that a failure prints
        raise argparse.ArgumentTypeError(f"{number} is below 0")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
