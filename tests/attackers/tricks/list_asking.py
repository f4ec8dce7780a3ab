"""The tricks by asking: commands, requests and names. All of them must be refused, or harmless."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.attackers.tricks import deeds_asking as deeds
from tests.attackers.tricks.list_git import slug
from tests.attackers.tricks.trick import Trick

COMMANDS = (
    ("policy", "set", "caps.all=99"), ("policy", "set", "attempt.may_add.command=true"),
    ("project", "add", "mine", "--repo", "{other}"), ("project", "set", "innocent", "--weight=9"),
    ("project", "remove", "innocent"), ("worker", "list"), ("pause",), ("clear", "--yes"),
    ("cancel", "first"), ("edit", "first", "--priority", "0"), ("reclaim",), ("down",),
    ("complete", "L1"), ("add", "--agent", "shell", "--", "touch", "{nowhere}"),
    ("add", "--env", "LD_PRELOAD={other}/x.so", "more"), ("add", "--project", "innocent", "more"),
    ("workspaces", "clean"), ("link",),
)  # fmt: skip
REQUESTS: tuple[tuple[str, str, object], ...] = (
    ("GET", "/status", None), ("GET", "/policy", None), ("GET", "/projects", None),
    ("GET", "/workers", None), ("GET", "/tasks/first", None), ("GET", "/tasks/first/logs", None),
    ("GET", "/events", None), ("PATCH", "/policy", {"set": {"caps.all": 99}}),
    ("POST", "/projects", {"name": "mine"}), ("DELETE", "/projects/innocent", None),
    ("POST", "/pause", {}), ("POST", "/clear", {}), ("POST", "/reclaim", {}),
    ("POST", "/tasks/first/cancel", {}), ("POST", "/tasks/first/retry", {}),
    ("PATCH", "/tasks/first", {"priority": 0}), ("POST", "/leases", {"limit": 9}),
    ("POST", "/leases/L1/complete", {}), ("POST", "/leases/L1/token", {}),
    ("POST", "/leases/L1/release", {"outcome": "failed"}),
    ("POST", "/tasks", {"tasks": [{"prompt": "x", "command": ["touch", "NOWHERE"]}]}),
    ("POST", "/tasks", {"tasks": [{"prompt": "x", "env": {"LD_PRELOAD": "x"}}]}),
    ("POST", "/tasks", {"tasks": [{"prompt": "x", "project": "innocent"}]}),
    ("POST", "/tasks", {"tasks": [{"prompt": "x", "agent": "shell"}]}),
)  # fmt: skip
#: Texts that a terminal, a page or a shell could take for more than text.
TEXTS = {
    "escape": "\x1b[2J\x1b]0;owned\x07", "return": "good\rbad", "line": "one\ntwo", "nul": "a\0b",
    "bell": "\x07", "c1": "\x9b31m", "override": "\u202egnp.exe",
    "zero-width": "ad\u200bmin", "mark": "\ufeffad\ufeffmin",
    "shell": "$(touch /tmp/x); `id`", "markup": "<script>alert(1)</script>", "long": "x" * 20_000,
    "field": "{prompt} {session}", "option": "--dangerously-skip-permissions",
    "surrogate": "\ud800",
}  # fmt: skip


def commands() -> Iterator[Trick]:
    for number, words in enumerate(COMMANDS):
        says = f"an attempt calls `fairlane {' '.join(words)}`"
        name = f"{slug('command', *words)[:40]}-{number}"
        batch = f"commands-{number % 4}"
        yield Trick("asking", name, says, deeds.command, words, batch, refused=True)


def requests() -> Iterator[Trick]:
    for number, (method, path, body) in enumerate(REQUESTS):
        says = f"the token of an attempt is enough for {method} {path}"
        words = (method, path, json.dumps(body) if body is not None else "")
        name = f"{slug('request', method, path)}-{number}"
        yield Trick("asking", name, says, deeds.request, words, "requests", refused=True)
    for how in ("empty", "lease", "dot", "other", "none", "long", "cut"):
        says = f"a token that nobody gave is enough ({how})"
        yield Trick("asking", f"forged-{how}", says, deeds.forged, (how,), "forged", refused=True)


def names() -> Iterator[Trick]:
    for number, (name, text) in enumerate(TEXTS.items()):
        for field in ("title", "prompt"):
            says = f"the {field} of a child reaches a terminal as more than text ({name})"
            words, batch = (field, text), f"names-{number % 4}"
            yield Trick("names", slug("name", field, name), says, deeds.child, words, batch)


TRICKS = [*commands(), *requests(), *names()]
