"""Overrides: git runs no program that a repository names; an agent can write what it names."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable

Setting = tuple[str, str]

#: Settings of every call: no hook, no monitor, no signature, nothing in the background.
_ALWAYS: tuple[Setting, ...] = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("commit.gpgSign", "false"),
    ("merge.verifySignatures", "false"),
    ("merge.autoStash", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", ""),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)
#: The environment of every call: nobody types, nothing comes over the net.
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
#: Whose settings an agent can write.
_SCOPES_OF_AGENTS = ("local", "worktree")
#: Settings that name programs, by their first and last word, and what stands in for them.
_PROGRAMS = {
    ("core", "askpass"): "",
    ("core", "gitproxy"): "",
    ("core", "sshcommand"): "",
    ("credential", "helper"): "",
    ("diff", "command"): "",
    ("diff", "external"): "",
    ("diff", "textconv"): "",
    ("filter", "clean"): "",
    ("filter", "process"): "",
    ("filter", "smudge"): "",
    ("hook", "command"): "true",
    ("lfs", "clean"): "",
    ("lfs", "path"): "",
    ("lfs", "smudge"): "",
    ("lfs", "standalonetransferagent"): "",
    ("merge", "driver"): "false",  # that is a conflict; an empty one would drop a side
}


def environment(settings: Iterable[Setting] = ()) -> dict[str, str]:
    """The environment of a call of git, with more settings that win over all files."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= _ENVIRONMENT
    pairs = [*_ALWAYS, *settings]
    for number, (name, value) in enumerate(pairs):
        env |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return env | {"GIT_CONFIG_COUNT": str(len(pairs))}


def without_programs(listing: str) -> list[Setting]:
    """What puts the user's own programs, or none, in the place of those that a repository names.

    The listing is that of `git config --list --show-scope -z`.
    """
    of_user: dict[str, list[str]] = defaultdict(list)
    of_agents: dict[str, str] = {}
    fields = listing.split("\0")
    for scope, line in zip(fields[::2], fields[1::2], strict=False):
        name, _, value = line.partition("\n")
        if scope not in _SCOPES_OF_AGENTS:
            of_user[name].append(value)
        elif (stand_in := _PROGRAMS.get(_first_and_last(name))) is not None:
            of_agents[name] = stand_in
    found = []
    for name, stand_in in of_agents.items():
        found += [(name, stand_in), *((name, value) for value in of_user[name])]
    hooks = {_all_but_last(each) for each in (*of_agents, *of_user) if each.startswith("hook.")}
    return found + _required(of_agents, of_user) + [(f"{each}.enabled", "false") for each in hooks]


def _required(of_agents: Iterable[str], of_user: dict[str, list[str]]) -> list[Setting]:
    """A filter that does not run fails: without it, git would store a file as it must not be."""
    filters = [each for each in of_agents if each.startswith("filter.")]
    return [(f"{_all_but_last(each)}.required", "true") for each in filters if not of_user[each]]


def _first_and_last(name: str) -> tuple[str, str]:
    return name.partition(".")[0], name.rpartition(".")[2]


def _all_but_last(name: str) -> str:
    return name.rpartition(".")[0]
