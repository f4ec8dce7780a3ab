"""A trick: a name, a sentence, a small program that tries it, and where it must fail."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from tests.attackers.tricks import scene


@dataclass(frozen=True, slots=True)
class Trick:
    """One thing that a malicious agent tries."""

    group: str
    name: str
    says: str  # one sentence: what it would do
    deed: Callable[..., None]
    words: tuple[str | int, ...] = ()
    #: Tricks of a batch run in one attempt, one after the other.
    batch: str = ""
    #: Without a sandbox an agent is the user: some tricks must fail inside one alone.
    must_fail: str = "always"
    #: Whether it needs a project with a repository.
    repo: bool = False
    #: With which code its agent ends: 0 leads to the commit, another to the next attempt.
    exit_code: int = 0
    #: Whether the agent itself must be told no; else it may do it, and nothing must come of it.
    refused: bool = False

    @property
    def attempt(self) -> str:
        """Which attempt tries it."""
        return self.batch or self.name


def batches(tricks: Iterable[Trick]) -> dict[str, list[Trick]]:
    """Tricks by the attempt that tries them."""
    ordered = sorted(tricks, key=lambda trick: trick.attempt)
    return {name: list(each) for name, each in groupby(ordered, key=lambda trick: trick.attempt)}


def some(tricks: Iterable[Trick], *, attempts: bool = False) -> list[Trick]:
    """Every third trick of each sort of deed, the first among them; or every third attempt."""
    seen: Counter[str] = Counter()
    found = []
    parts = batches(tricks).values()
    for part in parts if attempts else ([trick] for each in parts for trick in each):
        sort = part[0].deed.__name__
        if seen[sort] % 3 == 0:
            found += part
        seen[sort] += 1
    return found


def program(tricks: list[Trick], told: dict[str, str]) -> str:
    """The agent: the sources of these deeds, and the calls."""
    modules = {inspect.getsourcefile(each.deed): inspect.getmodule(each.deed) for each in tricks}
    sources = [inspect.getsource(scene)]
    sources += [inspect.getsource(module) for module in modules.values() if module]
    lines = [line for text in sources for line in text.splitlines() if "__future__" not in line]
    calls = json.dumps([(each.name, each.deed.__name__, each.words) for each in tricks])
    code = max(each.exit_code for each in tricks)
    end = f"perform({told!r}, json.loads({calls!r}), {code})"
    return "\n".join(["from __future__ import annotations", *lines, end])
