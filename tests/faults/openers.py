"""Processes that open one store over and over: some write to it, some look whether it is whole."""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

from fairlane.model.errors import FairlaneError, TryLater
from fairlane.store.sqlite.store import SqliteStore


def write(file: Path) -> None:
    """Grow the file, with a checkpoint after every few pages and one when it is closed."""
    for turn in count():
        store = SqliteStore.open(file)
        store.connection.execute("PRAGMA wal_autocheckpoint = 3")
        for number in range(4):
            with store.write() as writing:
                writing.put_value(f"{os.getpid()}.{number}", "x" * 3000 * (turn % 20))
        store.close()
        print("written", flush=True)


def look(file: Path) -> None:
    """Look at every page, and at the end of the file each time that it is opened."""
    while True:
        try:
            for _ in range(5):
                store = SqliteStore.open(file)
                store.verify()
                store.close()
            print("whole", flush=True)
        except TryLater:  # busy: somebody recovers after a kill
            continue
        except FairlaneError as error:
            print(error.message, flush=True)


if __name__ == "__main__":
    {"write": write, "look": look}[sys.argv[1]](Path(sys.argv[2]))
