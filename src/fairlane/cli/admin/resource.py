"""Commands `list` and `show` of a kind of thing; pools and workers, which have no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from fairlane.cli.call import Call
from fairlane.cli.look.status import pool_text
from fairlane.cli.options import common, takes_call
from fairlane.cli.output import listed, paint, safe, table, until_text, wrapped
from fairlane.cli.values import token_count
from fairlane.model.errors import Invalid
from fairlane.model.instant import Instant, parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairlane.model.documents.admin import PoolDocument, WorkerDocument
    from fairlane.model.instant import Instant


_Row = TypeVar("_Row")
_One = TypeVar("_One")


def resource(
    noun: str,
    about: str,
    rows: tuple[str, Callable[[list[_Row], Instant], str]],
    one: tuple[str, str, Callable[[_One, Instant], str]],
    *examples: str,
) -> click.Group:
    """A group of commands with `list` and `show`.

    `rows` and `one` are the help of each, the name in the example of `show`, and the text.
    """

    @click.group(noun, help=_help(about, f"{noun} list", *examples))
    @common
    def command() -> None:
        pass

    @command.command("list", help=_help(rows[0], f"{noun} list"))
    @takes_call
    def list_(call: Call) -> None:
        document = call.ask(f"{noun}_list")
        call.show(document, lambda: rows[1](document[f"{noun}s"], call.clock.now()))

    @command.command("show", help=_help(one[0], f"{noun} show {one[1]}"))
    @click.argument("name", metavar=noun.upper())
    @takes_call
    def show(call: Call, name: str) -> None:
        document = call.ask(f"{noun}_show", name=name)
        call.show(document, lambda: one[2](document[noun], call.clock.now()))

    return command


def _help(about: str, *examples: str) -> str:
    return f"{about}\n\n\b\nExample:\n" + "\n".join(f"  fairlane {line}" for line in examples)


def facts(name: str, values: Mapping[str, str]) -> str:
    """A name, and under it its values by name; empty ones are left out."""
    rows = {key.replace("_", " "): text for key, text in values.items() if text}
    wide = max(map(len, rows), default=0)
    lines = [wrapped(safe(text), wide + 4, f"  {key:{wide}}  ") for key, text in rows.items()]
    return "\n".join([paint(safe(name), "bold"), *lines]) if name else "\n".join(lines)


def shown(value: object) -> str:
    """A value in one line; nothing where there is none."""
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def usd(dollars: float | None) -> str:
    """`$1.23`; empty without a cost."""
    return f"${dollars:,.2f}" if dollars else ""


def number(name: str, text: str) -> int:
    """A whole number, negative ones too: the rules refuse them by name."""
    from fairlane.model.values import COUNT_MAX, digits, whole

    try:
        return whole(-COUNT_MAX)(digits(text))
    except Invalid as error:
        raise error.within(f"--{name.replace('_', '-')}") from None


def budget(text: str) -> dict[str, object]:
    """`tokens=50000,window=24h` as a table."""
    values: dict[str, object] = {}
    for part in text.split(","):
        name, sign, value = part.strip().partition("=")
        if not sign:
            raise Invalid(f"--budget: not NAME=VALUE: {part!r}", "Write tokens=50000,window=24h.")
        if name == "tokens":
            values[name] = token_count(value)
        elif name in ("usd", "warn_at"):
            values[name] = _fraction(name, value)
        else:
            values[name] = value
    return values


def _fraction(name: str, text: str) -> int | float:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise Invalid(f"--budget: {name}: not a number: {text!r}", "Write usd=5.50.") from None


def in_flight(pool: PoolDocument) -> str:
    """`2 of 4`, `2`."""
    cap = shown(pool["cap"])
    return f"{pool['in_flight']}{f' of {cap}' if cap else ''}"


def _pools(pools: list[PoolDocument], now: Instant) -> str:
    rows = [(pool["name"], in_flight(pool), pool_text(pool, now)) for pool in pools]
    return table(("pool", "in flight", "how it is"), rows, right=(1,)) or "there is no pool"


def _pool_facts(pool: PoolDocument, now: Instant) -> str:
    throttled = f"{pool['hits']} in a row" if pool["hits"] else ""
    values = {"in flight": in_flight(pool), "is": pool_text(pool, now), "throttled": throttled}
    return facts(pool["name"], values)


pool_commands = resource(
    "pool",
    "Accounts whose limits are shared: cooldowns, caps, what is in flight.",
    ("Every pool that an agent, a task or the settings name.", _pools),
    ("One pool.", "anthropic", _pool_facts),
)


def _workers(workers: list[WorkerDocument], now: Instant) -> str:
    head = ("worker", "host", "busy", "seen", "", "labels")
    rows = [(worker["name"], *_columns(worker, now)) for worker in workers]
    nobody = "no worker was seen yet; a plan assumes this machine with its slots"
    return table(head, rows, right=(2,), tint={"live": "green", "gone": "red"}) or nobody


def _worker_facts(worker: WorkerDocument, now: Instant) -> str:
    values = dict(zip(("host", "busy", "seen", "is", "labels"), _columns(worker, now), strict=True))
    values["runs"] = listed(worker["tasks"][:20], len(worker["tasks"]))
    return facts(worker["name"], values)


def _columns(worker: WorkerDocument, now: Instant) -> tuple[str, ...]:
    slots = shown(worker["slots"])
    return (
        worker["host"],
        f"{len(worker['tasks'])}{f' of {slots}' if slots else ''}",
        until_text(parse_instant(worker["seen_at"]), now),
        "live" if worker["live"] else "gone",
        shown(worker["labels"]),
    )


worker_commands = resource(
    "worker",
    "Machines that take work: slots, labels, when they were seen.\n\n"
    "A worker is known from its first `fairlane lease` on.",
    ("Every worker that was seen.", _workers),
    ("One worker with what it runs.", "box1", _worker_facts),
)
