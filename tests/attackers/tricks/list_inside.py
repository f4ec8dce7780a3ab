"""The tricks inside a sandbox: ways to files, ways out, the attempt's socket; the rest again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from tests.attackers.tricks import (
    deeds_changes,
    deeds_escape,
    deeds_socket,
    deeds_ways,
    list_asking,
    list_files,
    list_git,
    list_rest,
)
from tests.attackers.tricks.list_git import slug
from tests.attackers.tricks.trick import Trick

SECRETS = {name: list_files.SECRETS[name] for name in ("key", "token", "store")}
#: Ways that need root outside, or that a machine need not have: no control can ask for them.
RARE = ("handle", "tester-root", "the-loader")
#: Landlock has no rule for them; they show how many files are open, and no file.
UNRULED = ("descriptors", "limits")
#: What would show or change the machine.
OPENED = {
    "/proc/sys/kernel/core_pattern": "w", "/proc/sys/kernel/modprobe": "w",
    "/proc/sys/vm/drop_caches": "w", "/proc/sysrq-trigger": "w", "/proc/kcore": "r",
    "/sys/power/state": "w", "/sys/kernel/uevent_helper": "w", "/sys/fs/cgroup/cgroup.procs": "w",
    "/dev/mem": "r", "/dev/kmsg": "w", "/dev/kvm": "w", "/dev/fuse": "w", "/dev/loop-control": "w",
    "/dev/net/tun": "w", "/dev/vda": "r", "/dev/sda": "r", "/dev/nvme0n1": "r", "/dev/mapper": "r",
    "/etc/passwd": "w", "/etc/shadow": "r", "/etc/sudoers": "r", "/etc/ssh": "r",
    "/etc/profile.d": "new", "/etc/cron.d": "new", "/usr/bin": "new",
    "/usr/local/bin": "new", "/usr/lib": "new", "/var/spool/cron": "new", "/boot": "new",
    "/usr/bin/env": "w", "/run/docker.sock": "r", "/var/log": "r", "{home}/orders": "r",
}  # fmt: skip
#: Operations that are not the attempt's, and arguments that reach beyond it.
CALLS: tuple[tuple[str, object], ...] = (
    ("cancel", {"ids": ["first"]}), ("edit", {"ids": ["first"], "changes": {"priority": 0}}),
    ("pause", {"reason": "x"}), ("clear", {}), ("lease", {"limit": 9, "worker": "mine"}),
    ("policy_set", {"changes": {"caps.all": 99}}), ("policy_show", {}), ("list", {}),
    ("project_add", {"name": "mine", "values": {"repo": "HOME"}}), ("events", {}),
    ("show", {"task": "first"}), ("show", {"task": "../first"}), ("logs", {"task": "first"}),
    ("complete", {"lease": "L1"}), ("release", {"lease": "L1", "outcome": "failed"}),
    ("heartbeat", {"lease": ["L1"]}), ("add", {"tasks": [{"id": "../../x", "prompt": "x"}]}),
    ("add", {"tasks": [{"prompt": "x", "env": {"LD_PRELOAD": "x"}}]}),
    ("add", {"tasks": [{"prompt": "x", "project": "innocent"}]}),
    ("add", {"tasks": [{"prompt": "x", "needs": ["first"]}], "force": True}),
)  # fmt: skip
NAMED = ("escape", "c1", "override", "zero-width", "mark", "line")
PRINTED = ("numbers", "others", "controls", "deep", "types", "throttled", "no-end")
#: Attempts of the other lists that are tried again as they are.
AGAIN = ("hooks-common", "settings-common", "gitdir-other", "gitdir-is-fifo", "nested-added")


def ways() -> Iterator[Trick]:
    """A secret by every way, and a file of the user's changed by every way."""

    def reading(way: str, name: str, deed, path: str) -> Trick:
        says, trick = f"an agent reads {path} by {way}", slug("way", way, name)
        return Trick("files", trick, says, deed, (way, path), "ways", "sandboxed", refused=True)

    def changing(way: str, deed, sort: str) -> Trick:
        says = f"an agent {sort} something outside ({way})"
        return Trick("files", slug(sort, way), says, deed, (way,), "ways", "sandboxed")

    for name, path in SECRETS.items():
        for way in deeds_ways.NAMES:
            yield reading(way, name, deeds_ways.reads_by_name, path)
    for way in deeds_ways.READERS:
        yield reading(way, "key", deeds_ways.reads_by_reader, SECRETS["key"])
    for way in deeds_ways.NAMES:
        yield changing(way, deeds_changes.writes_by_name, "writes-by")
    for way in deeds_changes.CHANGES:
        yield changing(way, deeds_changes.changes, "changes")
    for way in deeds_changes.MAKINGS:
        yield changing(way, deeds_changes.makes, "makes")


def out() -> Iterator[Trick]:
    """Ways out, other processes, devices."""

    def one(name: str, says: str, deed, *words: str) -> Trick:
        return Trick("escapes", slug(name), says, deed, words, "out", "sandboxed", refused=True)

    inherited = "an agent reads what it was given open"
    yield one("inherited", inherited, deeds_ways.reads_inherited)
    for whose in ("parent", "daemon", "tester"):
        says = f"an agent reads the open files of another process ({whose})"
        yield one(f"descriptors-{whose}", says, deeds_ways.reads_descriptors, whose)
    for way in deeds_escape.ESCAPES:
        says = f"an agent gets to another view of the machine ({way})"
        yield one(f"escape-{way}", says, deeds_escape.escapes, way)
    for what in deeds_escape.TOUCHES:
        for whose in ("daemon", "tester"):
            says = f"an agent gets hold of another process ({what} of the {whose})"
            trick = one(f"touch-{what}-{whose}", says, deeds_escape.touches, what, whose)
            yield replace(trick, must_fail="bwrap" if what in UNRULED else "sandboxed")
    for path, how in OPENED.items():
        says = f"an agent opens {path} ({how})"
        yield one(f"open-{path}-{how}", says, deeds_escape.opens, path, how)
    yield one("mounts", "an agent mounts something", deeds_escape.may_mount)
    for place in ("/tmp", "/proc", "/usr", "/"):
        says = f"an agent takes away what hides the machine ({place})"
        yield one(f"uncovers {place}", says, deeds_escape.may_uncover, place)
    yield one("types", "an agent types into the terminal of a person", deeds_escape.types)
    yield one("disk", "an agent reads the disk itself", deeds_escape.makes_disk)


def socket() -> Iterator[Trick]:
    """What is asked of the attempt's socket."""
    for number, (operation, arguments) in enumerate(CALLS):
        says = f"the socket of an attempt answers to {operation} {arguments}"
        words, name = (operation, json.dumps(arguments)), f"{slug('call', operation)}-{number}"
        batch = f"socket-{number % 2}"
        yield Trick("asking", name, says, deeds_socket.calls, words, batch, refused=True)
    for kind in deeds_socket.BABBLE:
        says = f"the socket of an attempt chokes ({kind})"
        name = f"babble-{kind}"
        yield Trick("asking", name, says, deeds_socket.babbles, (kind,), "socket-0", refused=True)
    for how in ("removed", "moved", "linked"):
        says = f"the socket of an attempt is replaced ({how})"
        name, deed = f"socket-{how}", deeds_socket.replaces_socket
        yield Trick("asking", name, says, deed, (how,), "out-socket", refused=True)
    for text in NAMED:
        says = f"the title of a child reaches a terminal as more than text ({text})"
        words = ("title", list_asking.TEXTS[text])
        name = f"named-{text}"
        yield Trick("names", name, says, deeds_socket.child_by_socket, words, "socket-1")


def again() -> Iterator[Trick]:
    """Tricks of the other lists: run folders, artifacts, output, git; many in one attempt."""
    for trick in list_rest.FOLDERS:
        sort, last = trick.group, str(trick.words[-1])
        if sort == "run folder" and trick.deed.__name__ == "run_file":
            yield replace(trick, batch="run-again")
        elif sort == "artifacts" or (sort == "output" and last in PRINTED):
            yield replace(trick, batch="left-again")
    for trick in (*list_git.PROGRAMS, *list_git.ELSEWHERE, *list_git.TREES):
        if trick.attempt in AGAIN:
            yield trick


TRICKS = [*list_files.TRICKS, *ways(), *out(), *socket(), *again(), *list_rest.PROCESSES]


def tricks_in(kind: str) -> list[Trick]:
    """What is tried in a sandbox of this kind."""
    return [trick for trick in TRICKS if trick.must_fail in ("always", "sandboxed", kind)]


#: Where a canary is; outside a sandbox an agent reads it.
OPEN = (
    "key", "token", "store", "write-ahead-log", "other-work", "by-parent",
    "environments", "through-roots", "by-link", "by-hard-link",
)  # fmt: skip

#: What they leave in the home beside their own folders; nobody else is harmed by it.
STRAYING = {
    "artifact-up": "artifacts/artifact-up-escaped",
    "run-revoked-link": "runs/run-again/1/revoked",
}

#: Looks into the daemon that its own user may have; a machine can forbid more than these.
LOOKS = ("environment", "maps", "stack", "folder", "program", "descriptors", "oom", "limits")
REACHED = {"descriptors-daemon", *(f"touch-{what}-daemon" for what in LOOKS)}


def control() -> list[Trick]:
    """What succeeds without a sandbox, and harms nothing but the ground of the attack."""
    plain = {f"reads-{name}" for name in OPEN}
    found = [trick for trick in list_files.TRICKS if trick.name in plain]
    assert len(found) == len(OPEN)
    found += [trick for trick in again() if trick.name in STRAYING]
    found += [trick for trick in out() if trick.name in REACHED]
    return found + [trick for trick in ways() if trick.words[0] not in RARE]
