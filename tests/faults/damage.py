"""A store with something of everything in it, and the ways in which its file gets damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

from fairlane.app import STORE_FILE, open_context
from fairlane.clock import FixedClock
from fairlane.engine import compaction
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Report
from fairlane.model.instant import DAY, Instant
from fairlane.service import tasks
from tests import holder

PAGE = 4096
START: Instant = 20_000 * DAY
POLICY = (
    'preset = "balanced"\ncaps.all = 40\nbackpressure.soft = "none"\nbackpressure.hard = "none"\n'
)
#: What the first byte of a b-tree page says.
TABLE_PAGES, INDEX_PAGES = (5, 13), (2, 10)

Damage = Callable[[bytearray, Random], None]


def build(home: Path, witness: Path) -> None:
    """Ended work of which some was compacted, work that waits, and one task that leaves a mark."""
    home.mkdir()
    (home / "policy.toml").write_text(POLICY, encoding="utf-8")
    clock = FixedClock(START)
    context = open_context(home, clock=clock)
    try:
        tasks.add(context, [{"id": f"old{n}", "prompt": "p" * 6000} for n in range(60)])
        _complete_all(context, 60)
        clock.at += 40 * DAY
        compaction.compact(context)
        tasks.add(context, [{"id": f"t{n}", "prompt": "é" * (n % 7) * 400} for n in range(300)])
        _complete_all(context, 80)
        mark = {"agent": "shell", "command": ["touch", str(witness)], "priority": 1}
        tasks.add(context, [{"id": "mark", **mark}])
    finally:
        context.store.close()
    data = (home / STORE_FILE).read_bytes()
    assert int.from_bytes(data[36:40]), "there are no free pages"


def _complete_all(context: Context, count: int) -> None:
    while count > 0:
        given = holder.lease(context, limit=20, worker="w")["leases"]
        holder.complete(context, [each["lease"] for each in given], Report(tokens=(9, 9, 9, 9)))
        count -= len(given)


# What happens to files


def header(at: int) -> Damage:
    """Other bits in one byte of the file's header."""

    def damage(data: bytearray, chance: Random) -> None:
        data[at] ^= chance.randint(1, 255)

    return damage


def head_of_a_page(*sorts: int) -> Damage:
    """Other bits in the first bytes of a b-tree page."""

    def damage(data: bytearray, chance: Random) -> None:
        page = chance.choice([at for at in _pages(data) if data[at] in sorts])
        data[page + chance.randint(0, 7)] ^= chance.randint(1, 255)

    return damage


def inside_a_page(*sorts: int) -> Damage:
    """Other bits in sixteen bytes somewhere in a b-tree page."""

    def damage(data: bytearray, chance: Random) -> None:
        page = chance.choice([at for at in _pages(data) if data[at] in sorts])
        start = page + chance.randint(8, PAGE - 16)
        data[start : start + 16] = bytes(each ^ 0x5A for each in data[start : start + 16])

    return damage


def free_list(data: bytearray, chance: Random) -> None:
    """Another count in the first page that lists free pages."""
    trunk = (int.from_bytes(data[32:36]) - 1) * PAGE
    data[trunk + chance.choice([1, 2, 4, 5])] ^= chance.randint(1, 255)


def anywhere(data: bytearray, chance: Random) -> None:
    """Other bits in one byte."""
    data[chance.randrange(len(data))] ^= chance.randint(1, 255)


def zero_page(data: bytearray, chance: Random) -> None:
    """A page that was never written."""
    page = chance.choice(_pages(data))
    data[page : page + PAGE] = bytes(PAGE)


def cut(lost: int) -> Damage:
    """The end is not there."""

    def damage(data: bytearray, chance: Random) -> None:
        del data[-lost:]

    return damage


def cut_to(left: int) -> Damage:
    """Only the beginning is there."""

    def damage(data: bytearray, chance: Random) -> None:
        del data[left:]

    return damage


def half(data: bytearray, chance: Random) -> None:
    """The second half is not there."""
    del data[len(data) // 2 :]


def text(data: bytearray, chance: Random) -> None:
    """Something else in its place."""
    data[:] = b"These are my notes.\n" * 300


def _pages(data: bytearray) -> range:
    return range(PAGE, len(data), PAGE)


DAMAGES: dict[str, Damage] = {
    "text": text,
    "half": half,
    **{f"cut by {lost}": cut(lost) for lost in (1, 100, 4095, 4096, 10_000)},
    **{f"cut to {left}": cut_to(left) for left in (0, 1, 99, 100, 511, 4096)},
    **{
        f"header {at}": header(at)
        for at in (
            0,
            15,
            16,
            17,
            18,
            19,
            20,
            21,
            24,
            28,
            30,
            31,
            34,
            35,
            39,
            44,
            47,
            52,
            59,
            64,
            95,
        )
    },
    **{f"page head {n}": head_of_a_page(*TABLE_PAGES, *INDEX_PAGES) for n in range(8)},
    **{f"index page {n}": inside_a_page(*INDEX_PAGES) for n in range(6)},
    **{f"table page {n}": inside_a_page(*TABLE_PAGES) for n in range(6)},
    **{f"free list {n}": free_list for n in range(3)},
    **{f"zeros {n}": zero_page for n in range(4)},
    **{f"anywhere {n}": anywhere for n in range(6)},
}


def is_damaged(file: Path) -> bool:
    """What SQLite finds when it looks at every page, or fewer bytes than the header tells."""
    data = file.read_bytes()
    size = int.from_bytes(data[16:18])
    if len(data) % PAGE or len(data) < int.from_bytes(data[28:32]) * size:
        return True
    connection = sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok")
    except sqlite3.Error:
        return True
    finally:
        connection.close()
