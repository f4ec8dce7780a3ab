"""Config: of what a repository's configuration says, only what runs no program is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from fairlane.model.names import OLD_NAME
from fairlane.workspaces import git
from fairlane.workspaces.plain_files import bytes_of

_BYTES_MAX = 1 << 20
#: A name as git lists it: section, subsection if any, key.
_NAME = re.compile(r"([a-z][a-z0-9-]*)(?:\.([^\n\0]*))?\.([a-z][a-z0-9-]*)", re.DOTALL)
#: What is kept as it is: how files and names are stored, and who commits.
_KEPT = frozenset(
    {
        *(
            f"core.{key}"
            for key in (
                "autocrlf", "bare", "bigfilethreshold", "checkstat", "compression", "eol",
                "filemode", "ignorecase", "logallrefupdates", "longpaths", "precomposeunicode",
                "repositoryformatversion", "safecrlf", "sharedrepository", "sparsecheckout",
                "sparsecheckoutcone", "symlinks", "trustctime",
            )
        ),
        *(f"{who}.{what}" for who in ("user", "author", "committer") for what in ("name", "email")),
        "diff.renamelimit", "diff.renames", "i18n.commitencoding", "lfs.pushurl", "lfs.url",
        "merge.directoryrenames", "merge.renamelimit", "merge.renames", "push.autosetupremote",
        "push.default",
    }
)  # fmt: skip
#: Keys of one remote, branch or submodule that are kept: what a command for pull requests needs,
#: and which submodules are left out.
_KEPT_OF = {
    "remote": frozenset({"fetch", "gh-resolved", "lfsurl", "push", "pushurl", "url"}),
    "branch": frozenset({"fairlane-base", f"{OLD_NAME}-base", "merge", "pushremote", "remote"}),
    "submodule": frozenset({"active"}),
}
#: Files of patterns; they are kept where they are regular files.
_PATTERNS = frozenset({"core.attributesfile", "core.excludesfile"})
#: Extensions whose work we do ourselves, or that would fetch.
_NOT_EXTENDED = frozenset({"partialclone", "worktreeconfig"})
_OF_FILTERS = frozenset({"clean", "process", "smudge"})


def names_of_user() -> frozenset[str]:
    """What the user's own configuration sets; Fairlane trusts it."""
    env = git.environment() | {"GIT_DIR": os.devnull}
    done = git.execute(Path("/"), ("config", "--list", "--name-only", "-z"), env)
    return frozenset(os.fsdecode(done.stdout).split("\0"))


def settings_of(
    common: Path, own: Path, tree: Path, hooks: bool, of_user: frozenset[str]
) -> list[git.Setting]:
    """The settings of a repository that Fairlane keeps, in the order of its files."""
    pairs = _listed(common / "config")
    if own == common and ("extensions.worktreeconfig", "true") in pairs:
        pairs += _listed(own / "config.worktree")
    kept = [setting for name, value in pairs for setting in _kept(name, value, tree, hooks)]
    return [setting for setting in kept if not (_is_driver(setting[0]) and setting[0] in of_user)]


def of_worktree(own: Path, tree: Path) -> list[git.Setting]:
    """The settings that hold in one worktree alone; what it leaves out, the repository says."""
    pairs = _listed(own / "config.worktree")
    kept = [setting for name, value in pairs for setting in _kept(name, value, tree, hooks=False)]
    return [setting for setting in kept if not setting[0].startswith("core.sparsecheckout")]


def text_of(settings: Iterable[git.Setting]) -> str:
    """A configuration file."""
    lines = []
    for name, value in settings:
        if (found := _NAME.fullmatch(name)) is None:
            continue
        section, within, key = found.groups()
        head = f"[{section}]" if within is None else f'[{section} "{_escaped(within)}"]'
        lines.append(f"{head}\n\t{key} = {_quoted(value)}\n")
    return "".join(lines)


def _listed(path: Path) -> list[git.Setting]:
    """What a file says; git parses the bytes, follows no include and opens nothing."""
    if not os.path.lexists(path):
        return []
    given = bytes_of(path, _BYTES_MAX)
    env = git.environment() | {"GIT_DIR": os.devnull}
    done = git.execute(
        Path("/"), ("config", "--file", "-", "--no-includes", "--list", "-z"), env, given=given
    )
    pairs = []
    for line in os.fsdecode(done.stdout).split("\0"):
        name, is_valued, value = line.partition("\n")
        if name:
            pairs.append((name, value if is_valued else "true"))
    return pairs


def _kept(name: str, value: str, tree: Path, hooks: bool) -> list[git.Setting]:
    """What becomes of one setting."""
    section, _, rest = name.partition(".")
    within, _, key = rest.rpartition(".")
    if name in _KEPT or key in _KEPT_OF.get(section, ()):
        return [(name, value)]
    if section == "extensions":
        return [] if key in _NOT_EXTENDED else [(name, value)]
    if name in _PATTERNS:
        return [(name, value)] if (tree / Path(value).expanduser()).is_file() else []
    if section == "filter" and key in _OF_FILTERS and within:
        return [(f"filter.{within}.required", "true")]  # it fails: its files must not be stored
    if section == "merge" and key == "driver" and within:
        return [(name, "false")]  # a conflict: merged as text, a file could be damaged
    return [(name, value)] if hooks and name == "core.hookspath" else []


def _is_driver(name: str) -> bool:
    return name.startswith("merge.") and name.endswith(".driver")


def _escaped(text: str) -> str:
    """As the name of a section has it: there a tab stands as it is."""
    return text.replace("\\", r"\\").replace('"', r"\"")


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace("\n", r"\n").replace("\t", r"\t") + '"'
