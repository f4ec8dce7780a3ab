"""Submodules: filled from copies that the repository has; what an agent changes there is named.

A new work tree gets every submodule that its commit declares, at the commit that it names, out of
the git folders that the repository keeps (`.git/modules`). Nothing is fetched: where a copy is
missing, the attempt does not start, and the error names the command that gets it. A submodule with
`submodule.NAME.active = false` in the repository's configuration stays empty.

Each has a git folder of its own in the work tree, which belongs to the agent. Fairlane never runs
git with it: it finds changes with a git folder in the home folder, as for clones.

Work inside a submodule belongs to another repository, and Fairlane delivers none of it. Changed
files and commits that the repository's copy does not have are named at the end of the attempt and
stay where they are. A commit that the copy has may be recorded as the new state of the submodule.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from fairlane.model.errors import Refused, listed
from fairlane.model.record import dataclass
from fairlane.workspaces import clone, git, plain_files, repository, upload
from fairlane.workspaces.plain_files import NotPlain, line_of, shown

#: The mode by which git stores another repository's commit instead of files.
LINK = "160000 "
#: The file that declares submodules, and how long it may be.
_FILE, _FILE_BYTES_MAX = ".gitmodules", 1 << 20
#: How many submodules may lie inside each other.
_DEPTH_MAX = 8
_NOT_OPENED = frozenset({"hooks", "modules"})
#: In our git folder of a submodule: it is there until the submodule is filled.
_BEING_MADE = "being_made"
#: In our git folder of a submodule: at which commit we left it, and for which branch.
_FILLED = "filled"
_UNKNOWN_COMMIT = "it is at a commit that the repository does not have"
_NO = ("false", "no", "off", "0")


@dataclass(frozen=True, slots=True)
class Submodule:
    """One submodule in a work tree, or in a submodule there."""

    name: str  # as it is declared
    link: str  # where it lies in the whole work tree
    commit: str  # that the work tree around it names
    path: Path
    top: git.Checkout  # the whole work tree
    at: git.Checkout | None  # with a git folder of ours; None: no copy is here
    is_here: bool  # whether the copy has the commit
    left_out: bool  # by the user


def any_in(at: git.Checkout) -> bool:
    """Whether the commit that is checked out declares submodules."""
    return bool(_declared(at, "HEAD"))


def fill(at: git.Checkout, started_with: Container[str]) -> tuple[Path, ...]:
    """Fill the submodules of a work tree; the folders that git reads for them.

    `started_with`: where the commit has submodules from which the work started. Others are the
    agent's: they are named when it ends.
    """
    reads: dict[Path, None] = {}
    for each in _found(at):
        if not _is_known(each, started_with):
            continue
        if each.at is None or not each.is_here:
            if each.left_out or os.path.lexists(each.path / ".git"):
                continue
            raise _missing(each)
        _bring_up(each, each.at)
        reads |= dict.fromkeys(upload.objects_of(each.at))
    return tuple(reads)


def read_by(at: git.Checkout) -> tuple[Path, ...]:
    """The folders that git reads for the submodules of a work tree."""
    if git.commit_of(at, "HEAD") is None or not any_in(at):
        return ()
    folders = [upload.objects_of(each.at) for each in _found(at) if each.at is not None]
    return tuple(dict.fromkeys(folder for several in folders for folder in several))


def refuse_changed(at: git.Checkout, started_with: Mapping[str, str]) -> None:
    """Work inside submodules would not be delivered: it is named, and stays where it is.

    `started_with`: the submodules of the commit from which the work started, and their commits.
    """
    changed = []
    for each in _found(at):
        why = _change_of(each)
        if not why and each.at is None and started_with.get(each.link, each.commit) != each.commit:
            why = _UNKNOWN_COMMIT
        if why:
            changed.append(f"{shown(each.link)} ({why})")
    if changed:
        hint = (
            "Commit and push them in the repository of the submodule, or take them back;"
            " then `fairlane retry TASK`."
        )
        message = f"{at.path} has changes inside submodules: {listed(changed, 3)}"
        raise Refused(message, hint, "submodule")


def reason_to_stay(at: git.Checkout) -> str:
    """What would be lost in submodules if the work tree were removed; empty: nothing."""
    for each in _found(at):
        if why := _change_of(each) or _loss_in(each):
            return f"submodule {shown(each.link)}: {why}"
    return ""


def untracked(at: git.Checkout) -> Iterator[str]:
    """New files inside of submodules, which are not delivered."""
    for each in _found(at):
        if each.at is not None and (each.at.own / "index").is_file():
            names = git.names(each.at, "ls-files", "--others", "-z", "--exclude-standard")
            yield from (f"{each.link}/{name}" for name in names)


def declared(at: git.Checkout) -> set[str]:
    """Where a work tree has submodules, by the commit that is checked out."""
    return {each.link for each in _found(at)}


def empty(at: git.Checkout) -> None:
    """Take away what is in the submodules, so that git looks into none of them."""
    for each in reversed(list(_found(at))):
        if each.path.is_dir() and not each.path.is_symlink():
            shutil.rmtree(each.path)
            each.path.mkdir()
        if each.at is not None:
            shutil.rmtree(each.at.own, ignore_errors=True)


def links_in(at: git.Checkout, commit: str) -> dict[str, str]:
    """The submodules, and other repositories, that a commit names, with the commit of each."""
    lines = git.names(at, "ls-tree", "-r", "-z", "--end-of-options", commit)
    pairs = (line.split("\t", 1) for line in lines if line.startswith(LINK))
    return {path: about.split()[2] for about, path in pairs}


def _found(at: git.Checkout) -> Iterator[Submodule]:
    """Every declared submodule of the commit that is checked out, from the outside in."""
    named, own = at.named or (at.path, at.own)
    folders = list(dict.fromkeys((own, at.common)))
    yield from _found_in(at, at, "HEAD", "", folders, named, _DEPTH_MAX)


def _found_in(
    top: git.Checkout, above: git.Checkout, commit: str, prefix: str, folders: list[Path],
    named: Path, depth: int,
) -> Iterator[Submodule]:  # fmt: skip
    """`folders`: git folders that may keep copies. `named`: the same place in the user's own."""
    names = _declared(above, commit) if depth else {}
    for link, wanted in (links_in(above, commit) if names else {}).items():
        name = names.get(link)
        if name is None or not (_is_inside(name) and _is_inside(link)):
            continue
        path = above.path / link
        places = [*(folder / "modules" / name for folder in folders), named / link / ".git"]
        copy, is_here = _copy(top, places, wanted)
        inside = None if copy is None else copy.with_tree(path, _own(copy, path))
        left_out = (git.configured(above, f"submodule.{name}.active") or "").lower() in _NO
        yield Submodule(name, f"{prefix}{link}", wanted, path, top, inside, is_here, left_out)
        if inside is not None and is_here:
            deeper = f"{prefix}{link}/", [inside.common], named / link, depth - 1
            yield from _found_in(top, inside, wanted, *deeper)


def _declared(above: git.Checkout, commit: str) -> dict[str, str]:
    """The names of submodules by their paths, as a commit has them: not as files say it now."""
    blob = f"{commit}:{_FILE}"
    size = git.call(above, "cat-file", "-s", blob, code_ok=(0, 128)).stdout.strip()
    if not size.isdigit() or int(size) > _FILE_BYTES_MAX:
        return {}
    words = ("config", "--blob", blob, "--no-includes", "--list", "-z")
    names = {}
    for pair in git.call(above, *words, code_ok=(0, 1, 128)).stdout.split("\0"):
        key, _, value = pair.partition("\n")
        section, _, rest = key.partition(".")
        name, _, key = rest.rpartition(".")
        if section == "submodule" and key == "path":
            names[value] = name
    return names


def _is_inside(name: str) -> bool:
    """Whether a name out of a repository leads below the folder that it is put behind."""
    parts = name.replace("\\", "/").split("/")
    return not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)


def _is_known(each: Submodule, started_with: Container[str]) -> bool:
    """Whether it, or the one that it lies in, was there at the start."""
    parts = each.link.split("/")
    return any("/".join(parts[:end]) in started_with for end in range(1, len(parts) + 1))


def _copy(above: git.Checkout, places: list[Path], commit: str) -> tuple[git.Checkout | None, bool]:
    """The git folder of a submodule, and whether it has a commit: the first that does, else any.

    A link on the way to one could lead into another repository.
    """
    there = [
        place for place in places if plain_files.followed(place) == place and _is_git_folder(place)
    ]
    copies = [repository.open_submodule(above, place) for place in there]
    having = [copy for copy in copies if git.commit_of(copy, commit) is not None]
    return next(iter(having or copies), None), bool(having)


def _is_git_folder(place: Path) -> bool:
    return (place / "objects").is_dir() and (place / "refs").is_dir()


def _own(copy: git.Checkout, path: Path) -> Path:
    """Our git folder for the work tree of a submodule."""
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return repository.folder_for(copy) / "trees" / digest


def _missing(each: Submodule) -> Refused:
    repo = (each.top.named or (each.top.path,))[0]
    message = f"submodule {shown(each.link)} of {repo} is not here at {each.commit[:12]}"
    hint = f"`git -C {repo} submodule update --init --recursive` gets it."
    if "/" not in each.link or each.name == each.link:
        name = shown(each.name)
        hint += f" `git -C {repo} config submodule.{name}.active false` leaves its folder empty."
    return Refused(message, hint, "no_submodule")


def _bring_up(each: Submodule, at: git.Checkout) -> None:
    """The submodule at its commit, unless an agent has worked there."""
    _check_way(each)
    if (at.own / _BEING_MADE).exists():  # a crash: nobody has worked in it
        shutil.rmtree(at.path, ignore_errors=True)
    branch = git.branch_of(each.top)
    if not os.path.lexists(at.path / ".git"):
        if not at.path.is_dir() or not any(at.path.iterdir()):
            _make(at, each.commit)
            _note_filled(at, each.commit, branch)
    elif not _change_of(each) and _recorded(at) != each.commit:
        filled, _, earlier = _line(at.own / _FILLED).partition(" ")
        if _recorded(at) == filled or earlier != branch:  # else its agent chose another commit
            git.run(at, "checkout", "--quiet", "--detach", each.commit)
            _tell(at, each.commit)
            _note_filled(at, each.commit, branch)


def _check_way(each: Submodule) -> None:
    """No link lies on the way to it: what is written there would go elsewhere."""
    for folder in (each.path, *each.path.parents):
        if folder == each.top.path:
            return
        if folder.is_symlink() or (os.path.lexists(folder) and not folder.is_dir()):
            message = (
                f"{shown(folder)} is no folder, and submodule {shown(each.link)} belongs there"
            )
            raise Refused(message, "Take it away, then `fairlane retry TASK`.", "in_the_way")


def _make(at: git.Checkout, commit: str) -> None:
    dot = at.path / ".git"
    shutil.rmtree(at.own, ignore_errors=True)
    _track(at, commit)
    (at.own / _BEING_MADE).touch()
    at.path.mkdir(parents=True, exist_ok=True)
    git.run(at, "checkout", "--quiet", "--force")
    (dot / "objects" / "info").mkdir(parents=True)
    (dot / "refs" / "heads").mkdir(parents=True)
    alternates = f"{at.common / 'objects'}\n"
    (dot / "objects" / "info" / "alternates").write_text(alternates, "utf-8", "surrogateescape")
    clone.copy_shallow(at, dot)
    clone.write_config(at, dot)
    _tell(at, commit)
    (at.own / _BEING_MADE).unlink()


def _track(at: git.Checkout, commit: str) -> None:
    """Our git folder for the work tree, at a commit."""
    at.own.mkdir(mode=0o700, parents=True, exist_ok=True)
    (at.own / "HEAD").write_text(f"{commit}\n", "utf-8")
    (at.own / "commondir").write_text(f"{at.common}\n", "utf-8", "surrogateescape")


def _tell(at: git.Checkout, commit: str) -> None:
    """The agent's git folder is at the commit, with the index that fits the files."""
    dot = at.path / ".git"
    repository.replace(dot / "HEAD", f"{commit}\n")
    shutil.copyfile(at.own / "index", dot / "index.new")
    (dot / "index.new").replace(dot / "index")


def _note_filled(at: git.Checkout, commit: str, branch: str | None) -> None:
    repository.replace(at.own / _FILLED, f"{commit} {branch}\n")


def _recorded(at: git.Checkout) -> str:
    """The commit at which we saw it last; empty: never."""
    return _line(at.own / "HEAD")


def _line(path: Path) -> str:
    with suppress(NotPlain):
        return line_of(path)
    return ""


def _change_of(each: Submodule) -> str:
    """What an agent did in a submodule that would not be delivered; empty: nothing."""
    path = each.path
    if not os.path.lexists(path):
        return ""  # taken away, which is a change of the work tree around it
    if path.is_symlink() or not path.is_dir():
        return "something else lies there"
    if not any(path.iterdir()):
        return ""
    try:
        head = _head_of(each)
    except (NotPlain, OSError):
        return "its git folder is not the one that it had"
    if each.at is None:
        return "" if head == each.commit else _UNKNOWN_COMMIT
    if git.commit_of(each.at, head) is None:
        return "it has commits of its own"
    if _recorded(each.at) != head:
        _track(each.at, head)
        git.run(each.at, "read-tree", "HEAD")
    return "files are changed" if _status(each.at, "no") else ""


def _loss_in(each: Submodule) -> str:
    """What else would be lost with a submodule: new files, and commits of other branches."""
    if each.at is None or not os.path.lexists(each.path / ".git"):
        return "" if each.at else _unknown_in(each)
    try:
        for name, commit in sorted(clone.commits_of(each.path).items()):
            if git.commit_of(each.at, commit) is None:
                return f"{shown(name.removeprefix('refs/'))} has commits of its own"
    except NotPlain as error:
        return str(error)
    return "it has files that are not committed" if _status(each.at, "normal") else ""


def _unknown_in(each: Submodule) -> str:
    """Of what an agent got by itself there is no copy to compare with."""
    return "no copy to compare it with is here" if os.path.lexists(each.path / ".git") else ""


def _status(at: git.Checkout, untracked: str) -> str:
    words = ("--porcelain", f"--untracked-files={untracked}", "--ignore-submodules=all")
    return git.run(at, "status", *words)


def _head_of(each: Submodule) -> str:
    """The commit at which a submodule is, read from files of its agent."""
    dot = each.path / ".git"
    if not dot.is_symlink() and dot.is_file():
        dot = _led_to(each, dot)
    if dot.is_symlink() or not dot.is_dir():
        raise NotPlain("it has no git folder")
    plain_files.check(dot, _NOT_OPENED)
    head = line_of(dot / "HEAD")
    found: Mapping[str, str] = clone.commits_in(dot)
    commit = found.get(head.removeprefix("ref: ")) if head.startswith("ref: ") else head
    if commit is None or not clone.COMMIT.fullmatch(commit):
        raise NotPlain("it is at no commit")
    return commit


def _led_to(each: Submodule, dot: Path) -> Path:
    """The git folder of a submodule that its agent got by itself: below that of the work tree."""
    kind, _, target = line_of(dot).partition(" ")
    folder = plain_files.followed(each.path / target)
    allowed = (each.top.own / "modules", each.top.path / ".git" / "modules")
    if kind != "gitdir:" or not any(folder.is_relative_to(place) for place in allowed):
        raise NotPlain("its .git leads elsewhere")
    return folder
