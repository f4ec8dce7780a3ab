"""What holders say is kept, and what they are told is true."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fairlane.model.amounts import MICRO_DOLLARS_MAX, TOKENS_MAX
from fairlane.model.task import Attempt
from fairlane.testing.torture.promises.base import Problem, Problems, promise

#: Operations by which holders tell what was used, and codes of answers with which that is booked.
TELLING = ("report", "complete", "release")
BOOKED = ("", "already_done", "checks_pending", "lease_lost", "lease_ended")
COUNTERS = ("input", "output", "cache_read", "cache_write")


@promise("told", 2)
def reports_kept(attempt: Attempt, said: Mapping[str, Any]) -> Problems:
    """What a holder was told to be taken in is booked, however late it came."""
    tokens = said.get("tokens") or {}
    for name, booked in zip(COUNTERS, attempt.tokens, strict=True):
        if booked < min(tokens.get(name, 0), TOKENS_MAX):
            text = f"lease {attempt.lease} has told {tokens[name]} {name}, and {booked} are known"
            yield Problem(text, attempt.task)
    usd = min(round((said.get("cost") or 0) * 10**6), MICRO_DOLLARS_MAX)
    if (attempt.usd or 0) < usd:
        text = f"lease {attempt.lease} has told {usd} micro-dollars, and {attempt.usd} are known"
        yield Problem(text, attempt.task)


#: A task that a prompt tells of: what stands below is quoted.
_TOLD = re.compile(
    r"^([^\s>:,]+)(?:, branch [^\n]*)?(?: \(its work is in your folder\))?:$", re.MULTILINE
)


def built_on(document: Mapping[str, Any]) -> list[str]:
    """The tasks whose work a lease document gives to its holder."""
    return [start["task"] for start in document["start"]] + told_of(document["prompt"])


def told_of(prompt: str) -> list[str]:
    """The tasks whose work a prompt tells of."""
    _, _, told = prompt.partition("What came before:")
    return _TOLD.findall(told)


@promise("given", 3)
def carries_what_is_done(names: Sequence[str], done: Sequence[str], attempt: Attempt) -> Problems:
    """An attempt builds on the work of those before it that are done, and on no other."""
    for name in names:
        if name not in done:
            yield Problem(f"it is given work of {name}, which is not done", attempt.task)
