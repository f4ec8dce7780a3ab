"""The store: whole lives of tasks beside peers and beside the same writes without us.

Every side writes to the same disk with `synchronous = FULL`.
"""

from __future__ import annotations

import json
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from bench.homes import folder, home
from bench.measure import Row, by_turns, seconds, show_seconds
from bench.peers import PROMPT, peers
from bench.recorded import recorded
from fairlane.engine.end_attempt import NOTHING
from fairlane.intake.fields import parse_jsonl
from fairlane.service import pull, tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from bench.sizes import Sizes
    from fairlane.engine.context import Context

#: The fastest of the peers.
BEST = "the best peer"
#: What is asked beside each, one at a time and in batches.
ONE = {"bare": ">= 0.7", "persist-queue": "> 1", "Huey": ">= 0.8"}
MANY = {"bare": ">= 0.5", BEST: ">= 2"}


def rows(sizes: Sizes) -> list[Row]:
    """Every figure of the store."""
    with folder() as here:
        what = "life of a task (add, lease, complete)"
        found = [*lives(here / "one", f"{what}, one at a time", sizes.lives, 1, sizes.turns, ONE)]
        many = f"the same in batches of {sizes.batch}"
        found += lives(here / "many", many, 1, sizes.batch, sizes.turns, MANY)
        found.append(added_from_a_file(here, sizes))
    return found


# Whole lives.


def lives(
    here: Path, what: str, times: int, batch: int, turns: int, asked: Mapping[str, str]
) -> Iterator[Row]:
    """Lives in batches of this size, several in a turn: ours, bare, and every peer, by turns."""
    here.mkdir()
    context, model = home(here / "ours"), home(here / "model")
    others = peers(here)

    def repeated(work: Callable[[], object]) -> None:
        for _ in range(times):
            work()

    life = partial(repeated, partial(live, model, batch))
    with recorded(model, here / "bare.db", [life] * (turns + 1)) as bare:
        works: dict[str, Callable[[], object]] = {
            "ours": partial(repeated, partial(live, context, batch)),
            "bare": bare,
        }
        for peer in others:
            one = peer.life if batch == 1 else partial(peer.batch, batch)
            works[peer.name] = partial(repeated, one)
        transactions = bare.transactions // times
        taken = {name: took / times for name, took in by_turns(works, turns).items()}
    for peer in others:
        peer.close()
    for each in (context, model):
        each.store.close()
    ours = taken.pop("ours")
    each_life = f"the same statements in {transactions} transactions"
    said = {"bare": f"{each_life}, recorded and replayed (decides nothing)"}
    said |= {peer.name: f"{peer.name} ({peer.lacks})" for peer in others}
    best = min(taken.keys() - {"bare"}, key=lambda name: taken[name], default="")
    for name, took in taken.items():
        wish = asked.get(name) or (asked.get(BEST, "") if name == best else "")
        yield Row(what, show_seconds(ours), f"{said[name]} {show_seconds(took)}", took / ours, wish)
    for name in sorted(asked.keys() - taken.keys() - ({BEST} if best else set())):
        told = f"{name} is not installed: pip install -e '.[bench]'"
        yield Row(what, show_seconds(ours), told, None, asked[name])


def live(context: Context, count: int) -> None:
    """As many tasks: added, leased, completed."""
    tasks.add(context, [{"prompt": PROMPT}] * count)
    given = pull.lease(context, limit=count, worker="w")["leases"]
    pull.finish_each(context, [(each["lease"], NOTHING) for each in given])
    if len(given) != count:
        raise AssertionError(f"{len(given)} of {count} tasks were leased")


# A file of tasks.


def added_from_a_file(here: Path, sizes: Sizes) -> Row:
    """All lines of a file in one transaction, read, checked and placed; the rows alone."""
    numbers = range(1, sizes.file_tasks + 1)
    path = here / "tasks.jsonl"
    lines = (json.dumps({"id": f"f{number}", "prompt": PROMPT}) for number in numbers)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def add(context: Context) -> None:
        records = parse_jsonl(path.read_text(encoding="utf-8"), str(path))
        added = tasks.add(context, records)
        if len(added["tasks"]) != sizes.file_tasks:
            raise AssertionError("not every line was added")

    ours, plain = [], []
    for number in range(sizes.long_turns):
        context, model = home(here / f"file-{number}"), home(here / f"model-{number}")
        ours.append(seconds(partial(add, context)))
        with recorded(model, here / f"bare-{number}.db", [partial(add, model)]) as bare:
            plain.append(seconds(bare))
            transactions = bare.transactions
        for each in (context, model):
            each.store.close()
    mine, theirs = median(ours), median(plain)
    against = f"the same inserts, transactions: {transactions}, replayed {show_seconds(theirs)}"
    what = f"adding {sizes.file_tasks:,} tasks from a file"
    return Row(what, show_seconds(mine), against, theirs / mine, ">= 0.5")
