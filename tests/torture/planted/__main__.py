"""`python -m tests.torture.planted [BUG…]`: find planted bugs anew, and write what was found."""

from __future__ import annotations

import argparse
import sys

from tests.torture.planted.finding import find, keep, known
from tests.torture.planted.listed import BUGS
from tests.torture.planted.table import write


def main() -> int:
    """Find all bugs, or those that are named; 1 if one is not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.planted", description=__doc__)
    parser.add_argument("bugs", nargs="*", metavar="BUG", help="part of a name; else all")
    parser.add_argument("--table", action="store_true", help="only write the table again")
    given = parser.parse_args()
    names = [name for name in BUGS if _is_named(name, given.bugs)]
    missed = 0
    for name in [] if given.table else names:
        found = find(BUGS[name])
        if found is None:
            missed += 1
            print(f"{name}: NOT FOUND", flush=True)
            continue
        keep({row: known()[row] for row in known() if row in BUGS} | {name: found})
        print(
            f"{name}: {found.promise}; cold {found.cold_seconds} s by seed {found.cold_seeds};"
            f" seed {found.seed}: {found.events} events, {found.seconds} s,"
            f" {found.choices} choices, shrunk to {len(found.shortest)}",
            flush=True,
        )
    write()
    return 1 if missed else 0


def _is_named(name: str, words: list[str]) -> bool:
    return not words or any(word in name for word in words)


if __name__ == "__main__":
    sys.exit(main())
