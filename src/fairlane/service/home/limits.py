"""Limits: how many files a daemon may have open, and how many agents it can watch with them."""

from __future__ import annotations

import resource
from typing import NamedTuple

#: What a daemon has open itself: store, log, server, threads that launch and settle. It has room
#: with the first number, and gets along with the second.
_OWN, _OWN_LEAST = 128, 48
#: For each agent: what tells of its end.
_EACH = 1
_NO_LIMIT = resource.RLIM_INFINITY


class Files(NamedTuple):
    """How many files a process may have open, and how many agents fit."""

    most: int
    agents: int

    def message(self, slots: int) -> str:
        """That fewer agents run than the settings allow."""
        return (
            f"a process may open only {self.most} files here (hard limit), "
            f"so at most {self.agents} agents run at once, not {slots}"
        )


HINT = (
    "Raise the limit for open files (`ulimit -Hn` shows it): `nofile` in /etc/security/limits.conf,"
    " or LimitNOFILE= of a service. Then `fairlane down` and `fairlane up --detach`."
)


def files_for(slots: int) -> Files | None:
    """The hard limit where it has no room for so many agents; None: there is room."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == _NO_LIMIT or hard >= _OWN_LEAST + slots * _EACH:
        return None
    return Files(hard, max(1, (hard - _OWN_LEAST) // _EACH))


def make_room(slots: int) -> None:
    """Raise the soft limit of this process to what so many agents need, or as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _OWN + slots * _EACH
    if soft != _NO_LIMIT and soft < needed:
        allowed = needed if hard == _NO_LIMIT else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
