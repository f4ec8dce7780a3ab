"""`python -m tests.torture.planted [BUG…]`: find planted bugs anew, and write what was found."""

from __future__ import annotations

import argparse
import sys

from tests.torture.planted.finding import Found, find, keep, known, shorten
from tests.torture.planted.listed import BUGS
from tests.torture.planted.table import write


def main() -> int:
    """Find all bugs, or those that are named; 1 if one is not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.planted", description=__doc__)
    parser.add_argument("bugs", nargs="*", metavar="BUG", help="part of a name; else all")
    parser.add_argument("--shrink", action="store_true", help="only look for shorter histories")
    parser.add_argument("--table", action="store_true", help="only write the table again")
    given = parser.parse_args()
    missed = 0
    for name in [] if given.table else [name for name in BUGS if _is_named(name, given.bugs)]:
        found = known().get(name) if given.shrink else find(BUGS[name])
        if found is None:
            missed += 1
            print(f"{name}: NOT FOUND", flush=True)
            continue
        found = shorten(BUGS[name], found)
        keep({row: each for row, each in known().items() if row in BUGS} | {name: found})
        print(_told(found), flush=True)
    write()
    return 1 if missed else 0


def _told(found: Found) -> str:
    return (
        f"{found.bug}: {found.promise}; cold {found.cold_seconds} s, {found.cold_seeds} seeds;"
        f" seed {found.seed}: {found.events} events, {found.seconds} s,"
        f" {found.choices} choices, shrunk to {len(found.shortest)}"
    )


def _is_named(name: str, words: list[str]) -> bool:
    return not words or any(word in name for word in words)


if __name__ == "__main__":
    sys.exit(main())
