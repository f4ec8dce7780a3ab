"""The tricks with git: hooks and settings in every place, git folders that lead elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from tests.attackers.tricks import deeds_git as deeds
from tests.attackers.tricks.trick import Trick

HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout",
    "post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update",
    "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase",
    "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
    "reference-transaction", "sendemail-validate", "update",
)  # fmt: skip
#: Where git finds hooks or settings, and what an agent does so that it does.
HOOK_PLACES = ("common", "own", "include", "worktree", "nested", "replaced")
PLACES = ("common", "worktree", "include", "onbranch", "gitdir", "nested", "replaced")
#: Settings that name programs; `PROGRAM` is the trick's own.
SETTINGS = {
    "alias.add": "!PROGRAM", "alias.status": "!PROGRAM", "browser.trick.cmd": "",
    "core.alternateRefsCommand": "", "core.askPass": "", "core.editor": "", "core.fsmonitor": "",
    "core.gitProxy": "", "core.pager": "", "core.sshCommand": "", "credential.helper": "",
    "credential.https://example.org.helper": "!PROGRAM", "diff.external": "",
    "diff.trick.command": "", "diff.trick.textconv": "", "difftool.trick.cmd": "",
    "gc.recentObjectsHook": "", "gpg.openpgp.program": "", "gpg.program": "",
    "gpg.ssh.defaultKeyCommand": "", "gpg.ssh.program": "", "gpg.x509.program": "",
    "guitool.trick.cmd": "", "hook.trick.command": "", "hook.trick.event": "reference-transaction",
    "interactive.diffFilter": "", "man.trick.cmd": "", "merge.trick.driver": "",
    "mergetool.trick.cmd": "", "pager.config": "", "pager.status": "",
    "remote.origin.receivepack": "", "remote.origin.uploadpack": "", "remote.origin.vcs": "",
    "sendemail.sendmailCmd": "", "sequence.editor": "", "submodule.sub.update": "!PROGRAM",
    "tar.trick.command": "", "trailer.trick.command": "", "trailer.trick.cmd": "",
    "uploadpack.packObjectsHook": "",
}  # fmt: skip
#: Settings that bring git to run what others name.
SWITCHES = {
    "commit.gpgSign": "true", "diff.ignoreSubmodules": "none", "gc.auto": "1",
    "log.showSignature": "true", "maintenance.auto": "true", "merge.verifySignatures": "true",
    "status.submoduleSummary": "true", "submodule.recurse": "true", "tag.gpgSign": "true",
}  # fmt: skip
FILES = ("HEAD", "ORIG_HEAD", "index", "logs/HEAD", "COMMIT_EDITMSG", "index.lock", "MERGE_HEAD")
COMMON_FILES = (
    "config", "config.lock", "packed-refs", "packed-refs.lock", "info/exclude", "info/attributes",
    "objects/info/alternates", "shallow", "ORIG_HEAD", "logs/HEAD",
)  # fmt: skip


def slug(*words: str) -> str:
    """A name for a trick that also names a task, a project and a file."""
    text = "-".join(words).lower()
    return "".join(each if each.isalnum() else "-" for each in text).strip("-")


def hooks() -> Iterator[Trick]:
    for place in HOOK_PLACES:
        for hook in HOOKS:
            says = f"git runs the hook {hook} that the agent left ({place})"
            name = slug("hook", place, hook)
            batch = f"hooks-{place}"
            yield Trick("git", name, says, deeds.hook_at, (place, hook), batch, repo=True)


def settings() -> Iterator[Trick]:
    for place in PLACES:
        for key, value in {**SETTINGS, **SWITCHES}.items():
            says = f"git runs the program that {key} names ({place})"
            words = (place, key, value)
            batch = f"settings-{place}"
            name = slug("setting", place, key)
            yield Trick("git", name, says, deeds.setting_at, words, batch, repo=True)
    for kind in ("filter.clean", "filter.smudge", "filter.process", "diff.command", "merge.driver"):
        for where in ("info", "tree", "elsewhere"):
            says = f"git sends files through {kind} of the repository ({where})"
            name, batch = slug("driver", kind, where), slug("driver", kind)
            yield Trick("git", name, says, deeds.driver, (kind, where), batch, repo=True)


def one(name: str, says: str, deed, *words: str, **more) -> Trick:
    return Trick("git", slug(name), says, deed, words, repo=True, **more)


def elsewhere() -> Iterator[Trick]:
    """The work tree leads git somewhere else."""
    for name, text in {
        "other": "gitdir: {other}/.git\n",
        "user": "gitdir: {user}\n",
        "repo": "gitdir: {repo}/.git\n",
        "up": "gitdir: ../../../../other/.git\n",
        "two-lines": "gitdir: {own}\ngitdir: {other}/.git\n",
        "no-word": "{own}\n",
        "itself": "gitdir: .git\n",
        "empty": "",
    }.items():
        says = "the daemon commits into the git folder that `.git` names"
        yield one(f"gitdir-{name}", says, deeds.gitdir_file, text)
    for kind in ("fifo", "huge", "binary", "long", "none", "link", "folder", "copy", "bare"):
        says = f"`.git` of the work tree is replaced ({kind})"
        yield one(f"gitdir-is-{kind}", says, deeds.gitdir_bytes, kind)
    for kind in ("link", "dangling", "file", "fifo", "gone", "moved", "locked"):
        says = f"the work tree itself is replaced ({kind})"
        yield one(f"worktree-is-{kind}", says, deeds.work_tree, kind)
    for kind in ("link", "stranger", "commondir", "locked"):
        says = f"git lists a worktree that is none, and works there ({kind})"
        yield one(f"record-{kind}", says, deeds.made_up_record, kind)


def git_folders() -> Iterator[Trick]:
    """Files and folders of the git folder that are something else."""
    for name in FILES:
        for kind in ("link", "fifo"):
            says = f"git writes or waits through {name} of the worktree ({kind})"
            yield one(f"own-{name}-{kind}", says, deeds.git_file, "own", name, kind)
    for name in COMMON_FILES:
        for kind in ("link", "fifo"):
            says = f"git writes or waits through {name} of the repository ({kind})"
            yield one(f"common-{name}-{kind}", says, deeds.git_file, "common", name, kind)
    for name, text in {"commondir": "{other}/.git\n", "gitdir": "{other}/.git\n"}.items():
        says = f"{name} of the worktree names another repository"
        yield one(f"own-{name}-other", says, deeds.git_file, "own", name, text)
    yield one("common-commondir", "the repository shares the git folder of another",
              deeds.git_file, "common", "commondir", "{other}/.git\n")  # fmt: skip
    for name in ("refs", "refs/heads", "refs/heads/fairlane", "logs", "logs/refs/heads/fairlane",
                 "objects", "objects/pack", "objects/info", "info", "worktrees"):  # fmt: skip
        says = f"{name} of the repository is a link into another one"
        yield one(f"folder-{name}", says, deeds.git_folder, "common", name)
    for name, text in {
        "main": "ref: refs/heads/main\n",
        "hash": "1" * 40 + "\n",
        "words": "\0x",
    }.items():
        yield one(f"head-{name}", "the work is committed on another branch", deeds.head_at, text)
        yield one(f"branch-{name}", "the task's branch is another one", deeds.branch_at, text)
    yield one("stolen-commit", "the branch brings in another repository's commit",
              deeds.stolen_commit)  # fmt: skip
    yield one("missing-objects", "git asks a program for objects", deeds.missing_objects)


def trees() -> Iterator[Trick]:
    """What the work tree holds."""
    for kind in ("deep", "added", "committed", "absorbed", "file", "bare"):
        says = f"git runs the monitor of a repository inside the work tree ({kind})"
        yield one(f"nested-{kind}", says, deeds.nested_repository, kind)
    for kind in ("fifo", "links", "huge"):
        says = f"git follows, reads or waits for files of the work tree ({kind})"
        yield one(f"tree-{kind}", says, deeds.special_files, kind)
    yield one("tree-names", "file names mislead a program or a terminal", deeds.hostile_names)
    yield one("tree-deep", "a commit fails on a path far down", deeds.deep_tree)
    yield one("tree-dotgit", "a checkout writes into .git", deeds.tree_with_git_inside)
    yield one("tree-outside", "a commit takes in what links lead to", deeds.links_outside)


PROGRAMS = [*hooks(), *settings()]
TREES = [*trees()]
ELSEWHERE = [*elsewhere()]
FOLDERS = [*git_folders()]
