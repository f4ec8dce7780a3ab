"""The tricks that an agent without a sandbox succeeds with, because it is the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.attackers.tricks import deeds_files as deeds
from tests.attackers.tricks.list_git import slug
from tests.attackers.tricks.trick import Trick

#: Where the canaries are.
SECRETS = {
    "key": "{user}/.ssh/id_ed25519",
    "git-config": "{user}/.gitconfig",
    "token": "{home}/token",
    "attempts-key": "{home}/attempts.key",
    "settings": "{home}/fairlane.toml",
    "policy": "{home}/policy.toml",
    "store": "{home}/fairlane.db",
    "write-ahead-log": "{home}/fairlane.db-wal",
    "daemon": "{home}/daemon.json",
    "daemon-log": "{home}/daemon.log",
    "own-run": "{home}/runs/files/1/runner.json",
    "other-run": "{home}/runs/first/1/stdout.log",
    "other-work": "{home}/work/kept/notes",
    "other-repository": "{other}/new",
    "project": "{root}/repos/innocent/README",
    "shadow": "/etc/shadow",
    "memory": "/proc/1/environ",
    "by-root": "/proc/1/root{user}/.ssh/id_ed25519",
    "by-parent": "/proc/self/root{user}/.ssh/id_ed25519",
}
TREES = {"home": "{home}", "user": "{user}", "other": "{other}", "victims": "{victims}"}
#: Where an agent has no business to write.
TARGETS = {
    "victim": "{victims}/{name}",
    "nowhere": "{nowhere}/{name}",
    "key": "{user}/.ssh/authorized_keys",
    "shell": "{user}/.bashrc",
    "git-config": "{user}/.gitconfig",
    "hooks": "{other}/.git/hooks/post-commit",
    "other-config": "{other}/.git/config",
    "project-config": "{root}/repos/innocent/.git/config",
    "project-main": "{root}/repos/innocent/.git/refs/heads/main",
    "settings": "{home}/fairlane.toml",
    "policy": "{home}/policy.toml",
    "store": "{home}/fairlane.db",
    "token": "{home}/token",
    "programs": "{root}/hostile",
    "by-root": "/proc/1/root{victims}/{name}",
}


def sandboxed(
    name: str, says: str, deed: Callable[..., None], *words: str, refused: bool = False
) -> Trick:
    return Trick("files", slug(name), says, deed, words, "files", "sandboxed", refused=refused)


def files() -> Iterator[Trick]:
    for name, path in SECRETS.items():
        refused = name != "memory"  # in bubblewrap the first process is the agent's own
        says = f"an agent reads {path}"
        yield sandboxed(f"reads-{name}", says, deeds.reads, path, refused=refused)
    for name, path in TREES.items():
        says = f"an agent reads everything in {path}"
        yield sandboxed(f"reads-all-{name}", says, deeds.reads_tree, path)
    for name, path in TARGETS.items():
        yield sandboxed(f"writes-{name}", f"an agent writes {path}", deeds.writes, path)
        yield sandboxed(f"takes-{name}", f"an agent moves {path}", deeds.removes, path)
        yield replace(  # Landlock has no rule for modes
            sandboxed(f"opens-{name}", f"an agent opens {path} to all", deeds.opens_modes, path),
            must_fail="bwrap",
        )
    says = "an agent reads the environment of the daemon"
    yield sandboxed("reads-environments", says, deeds.reads_environments)
    says = "an agent reads files through the root of another process"
    yield sandboxed("reads-through-roots", says, deeds.reads_memory, refused=True)
    says = "an agent reads a key through a link"
    yield sandboxed("reads-by-link", says, deeds.reads_by_link, refused=True)
    says = "an agent links a key into its folder"
    yield sandboxed("reads-by-hard-link", says, deeds.hard_link, refused=True)
    says = "an agent reads the daemon's memory"
    yield sandboxed("reads-daemon-memory", says, deeds.traces, refused=True)


TRICKS = [*files()]
