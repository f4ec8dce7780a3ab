"""Agents that misbehave: what each attempt and each check does, drawn from the seed.

The same task has the same luck in every replay, whatever was taken away from the history.
"""

from __future__ import annotations

import json
from errno import ENOENT, ENOSPC

from fairlane.executors.base import Exit, Orders
from fairlane.model.amounts import DOLLARS_MAX, TOKENS_MAX
from fairlane.model.errors import FairlaneError
from fairlane.simulation.processes import Script
from fairlane.testing.torture.dice import Dice

#: How long agents work, and how long they take to stop, in seconds.
SECONDS = (0.2, 1.0, 4.0, 15.0, 60.0, 240.0, 900.0, 3600.0)
STOPS = (0.0, 0.0, 0.5, 10.0, 90.0)
#: Totals that agents report; the last two are absurd.
TOKENS = (0, 10, 900, 15_000, 200_000, 2_000_000, TOKENS_MAX, 10**30)
_GARBAGE = (
    '{"type":"result","outcome":"succe', "\x1b[2J\x00\x07", '{"type":"result"}\n' * 3, "[" * 200,
    '{"type":"result","outcome":"won","tokens":{"input":-5,"output":"many"}}\n', "x" * 5000,
    '{"type":"progress","tokens":{"input":1e400},"usd":-3,"text":["a"]}\n',
)  # fmt: skip
#: (weight, way to end) of an agent.
WAYS = (
    (46, "succeeds"), (12, "fails"), (7, "throttled"), (3, "window"), (4, "refused"), (4, "hangs"),
    (5, "garbage"), (5, "gone"), (3, "environment"), (1, "login"), (4, "twice"), (4, "long"),
    (3, "silent"), (2, "shrinks"), (2, "no room"),
)  # fmt: skip
_PASS = {"succeeds", "twice", "long", "shrinks", "silent"}


def script_of(seed: int, orders: Orders, *, tame: bool = False) -> Script:
    """What a launch does; `tame`: nothing that never ends by itself."""
    dice = Dice(seed, orders.folder.parent.name, orders.folder.name)
    seconds, stop_seconds = dice.one(SECONDS), dice.one(STOPS)
    if ".check." in orders.folder.name:
        return _check(dice, seconds, stop_seconds)
    usual = Dice(seed, "agents").one(WAYS)[1]  # each history has a way of its own
    way = usual if dice.chance(250) and not tame else dice.weighted(WAYS)
    if tame and way == "hangs":
        way = "fails"
    return _agent(dice, way, seconds, stop_seconds)


def _check(dice: Dice, seconds: float, stop_seconds: float) -> Script:
    ends = dice.weighted(((70, 0), (20, 1), (5, 137)))
    text = ((0.0, dice.one(("all good\n", "\x1b[31mred\n", "x" * 3000))),)
    gone = dice.chance(40)
    return Script(min(seconds, 60.0), text, (), Exit(exit_code=ends), gone, None, stop_seconds)


def _agent(dice: Dice, way: str, seconds: float, stop_seconds: float) -> Script:
    if way == "refused":
        why = dice.one((OSError(ENOENT, "no such program"), FairlaneError("it cannot start")))
        return Script(refused=why)
    if way == "no room":
        return Script(refused=OSError(ENOSPC, "no space left on device"))
    if way == "long":
        seconds *= 20
    prints = _progress(dice, way, seconds)
    last = _result(dice, way)
    if last:
        prints.append((seconds, last))
    code = 0 if way in _PASS else dice.one((1, 1, 0, 2))
    return Script(
        None if way == "hangs" else seconds,
        tuple(sorted(prints)),
        ((0.0, dice.one(("", "warning: odd\n", "Error: 429 Too Many Requests\n"))),),
        Exit(exit_code=code),
        gone=way == "gone",
        stop_seconds=stop_seconds,
    )


def _progress(dice: Dice, way: str, seconds: float) -> list[tuple[float, str]]:
    """What it prints on the way: its session, usage, garbage."""
    prints = [(0.0, _line({"type": "start", "session": f"s{dice.below(100)}"}))]
    if way == "garbage":
        prints += [(seconds * dice.below(8) / 8, dice.one(_GARBAGE)) for _ in range(3)]
    if way == "silent":
        return []
    total = dice.one(TOKENS[:6])
    for step in range(1, 1 + dice.below(4)):
        part = total * (5 - step if way == "shrinks" else step) // 4
        record = {"type": "progress", "text": f"step {step}", **_used(dice, part)}
        prints.append((seconds * step / 5, _line(record)))
    return prints


def _result(dice: Dice, way: str) -> str:
    """Its last words."""
    used = _used(dice, dice.one(TOKENS))
    ways: dict[str, dict[str, object]] = {
        "fails": {"outcome": "failed", "detail": "it is red"},
        "throttled": {"outcome": "throttled", "retry_after": dice.one((0, 1, 20, 400, -5, 10**12))},
        "window": {"outcome": "throttled", "resets_at": 1_800_000_000 + dice.below(90_000)},
        "environment": {"outcome": "environment", "detail": "no room"},
        "login": {"outcome": "environment", "pause": "not logged in"},
        "garbage": {"outcome": dice.one(("succeeded", "lost", "canceled", "", "asked"))},
    }
    says = ways.get(way, {"outcome": "succeeded", "text": "It is done."})
    if way in ("silent", "gone", "hangs"):
        return ""
    line = _line({"type": "result", **says, **used})
    return line * 2 if way == "twice" else line


def _used(dice: Dice, total: int) -> dict[str, object]:
    tokens = {"input": total * 7 // 10, "output": total - total * 7 // 10}
    tokens |= {"cache_read": total * 3, "cache_write": total // 9}
    if dice.chance(200):
        return {}
    usd = dice.one((None, total * 4 / 10**6, 0.0, 10.0 * DOLLARS_MAX if total > TOKENS_MAX else 1))
    return {"tokens": tokens} if usd is None else {"tokens": tokens, "usd": usd}


def _line(record: dict[str, object]) -> str:
    return json.dumps(record) + "\n"
