"""Commands as people type them: how long a process takes, and many short programs."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING

from bench.homes import fairlane, folder, home, run
from bench.measure import Row, by_turns, median_pair, show_seconds
from bench.queues import queue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.queues import Queue
    from bench.sizes import Sizes

SLOTS = 8
PARALLEL = "parallel"


def rows(sizes: Sizes) -> list[Row]:
    """Every figure of commands."""
    with folder() as here:
        return [*started(here, sizes), programs(here, sizes)]


# Processes.


def started(here: Path, sizes: Sizes) -> Iterator[Row]:
    """Four commands with a long queue, with a short one, and Python alone."""
    with queue(here / "small", sizes.short) as small, queue(here / "large", sizes.long) as large:
        for name in words(large):
            works = {
                "large": partial(run, *fairlane(large.home, *words(large)[name])),
                "small": partial(run, *fairlane(small.home, *words(small)[name])),
                "python": partial(run, sys.executable, "-c", "pass"),
            }
            taken = by_turns(works, sizes.turns)
            ours, few, python = taken["large"], taken["small"], taken["python"]
            what = f"`fairlane {name}` as a process, {sizes.long:,} queued"
            told = f"python -c pass {show_seconds(python)}"
            yield Row(what, show_seconds(ours), told, ours / python, "<= 7")
            told = f"{sizes.short:,} queued in the same lanes {show_seconds(few)}"
            yield Row(what, show_seconds(ours), told, ours / few, "<= 1.2")


def words(held: Queue) -> dict[str, tuple[str, ...]]:
    """The commands, each with its arguments."""
    project, _, _ = held.places[0]
    return {
        "status": ("status",),
        "add": ("add", "One more", "--project", project, "--agent", "claude"),
        "list": ("list",),
        "why": ("why", held.last),
    }


# Many short programs.


def programs(here: Path, sizes: Sizes) -> Row:
    """The program `true` again and again; the tasks were added before."""
    lines = [json.dumps({"agent": "shell", "command": ["true"]})] * sizes.programs
    tasks = here / "tasks.jsonl"
    tasks.write_text("\n".join(lines) + "\n", encoding="utf-8")
    what = f"{sizes.programs:,} tasks `true` through `fairlane run`, {SLOTS} slots (ratio of rates)"
    rest = iter([added(here / f"run-{turn}", tasks) for turn in range(sizes.long_turns + 1)])

    def ours() -> None:
        run(*fairlane(next(rest), "run"))

    if shutil.which(PARALLEL) is None:
        took, _ = median_pair(ours, lambda: None, sizes.long_turns)
        told = "GNU parallel is not installed: apt-get install -y parallel"
        return Row(what, rate(sizes.programs, took), told, None, ">= 0.4")
    log = here / "parallel.log"
    numbers = here / "numbers"
    numbers.write_text("".join(f"{number}\n" for number in range(sizes.programs)))
    many = [PARALLEL, "--will-cite", "--joblog", str(log), "-j", str(SLOTS), "-a", str(numbers)]

    def theirs() -> None:
        run(*many, "true", "{}")

    took, plain = median_pair(ours, theirs, sizes.long_turns)
    told = f"GNU parallel with a job log {rate(sizes.programs, plain)} (no queue, no retry)"
    return Row(what, rate(sizes.programs, took), told, plain / took, ">= 0.4")


def added(path: Path, tasks: Path) -> Path:
    """A home with the tasks of a file."""
    home(path, f"caps.all = {SLOTS}\n[backpressure]\nsoft = 'none'\nhard = 'none'\n").store.close()
    run(*fairlane(path, "add", "--file", str(tasks)))
    return path


def rate(count: int, took: float) -> str:
    return f"{count / took:,.0f} /s"
