"""Repository: a project's git folder, checked from files before git starts, and our view of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from fairlane.model.errors import MISSING, Refused
from fairlane.model.record import dataclass
from fairlane.workspaces import config, git, plain_files
from fairlane.workspaces.plain_files import NotPlain, bytes_of, followed, line_of, real, shown

#: Where the home folder keeps what it knows of repositories.
FOLDER = "git"
#: Entries of a git folder in which links may lie: git writes nothing there.
_NOT_OPENED = frozenset({"hooks", "modules"})
#: What our view takes from the repository: everything but its configuration and its hooks.
_SHARED = ("HEAD", "info", "logs", "objects", "packed-refs", "refs", "shallow", "worktrees")
#: Folders of programs that store beside git, and of references in a newer format.
_SHARED_IF_THERE = ("annex", "git-crypt", "lfs", "reftable")
_RECORD = "repository.json"
_RECORD_BYTES_MAX = 1 << 20
#: In our folder of a repository: what Fairlane knows of its submodules.
SUBMODULES = "submodules"
#: In our folder of a repository: where its remotes lead.
REMOTES = "remotes"
_SPARSE = "core.sparsecheckout"
#: What a record says of where a repository is.
_PLACES = ("path", "own", "common")


class Unsafe(Refused):
    """A repository is not what it was, or is so that git could be led elsewhere."""

    code = "unsafe_repository"


@dataclass(frozen=True, slots=True)
class _Found:
    """Where the git folders of a work tree are."""

    path: Path
    own: Path
    common: Path
    alternates: frozenset[str]


def open_at(home: Path, folder: Path, hooks: bool = False) -> git.Checkout | None:
    """The checkout in a folder of the user's, safe to call git in; None: there is none."""
    ours, folder = _place(home, folder), folder.resolve()
    try:
        if not os.path.lexists(folder / ".git"):
            return None
        own, common = _git_folders(folder)
        if not ((common / "objects").is_dir() and (common / "refs").is_dir()):
            return None
        view = _view(_Found(folder, own, common, alternates_of(common)), ours, folder, hooks)
    except (NotPlain, OSError) as error:
        raise _unsafe(folder, error) from error
    return git.Checkout(folder, own, common, view, hooks, named=(folder, own))


def open_submodule(above: git.Checkout, folder: Path) -> git.Checkout:
    """The git folder of a submodule, safe to read; it has no work tree and runs no hooks."""
    assert above.named is not None
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    ours = _place_of_submodules(above) / digest
    try:
        found = _Found(folder, folder, folder, alternates_of(folder))
        view = _view(found, ours, above.named[0], hooks=False)
    except (NotPlain, OSError) as error:
        raise _unsafe(folder, error) from error
    return git.Checkout(folder, folder, folder, view, named=above.named)


def _place_of_submodules(above: git.Checkout) -> Path:
    """One folder for all submodules of a repository, also for those inside of submodules."""
    own = folder_for(above)
    return own.parent if own.parent.name == SUBMODULES else own / SUBMODULES


def _unsafe(folder: Path, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno in MISSING:
        return error
    hint = "Git would follow it, so it is not called: remove it, then `fairlane retry TASK`."
    return Unsafe(f"the git folder of {folder} is not safe: {error}", hint)


def _view(found: _Found, ours: Path, named: Path, hooks: bool) -> Path:
    """Check a git folder, and bring our view of it up to date."""
    common = found.common
    for place in {found.own, common}:
        plain_files.check(place, _NOT_OPENED)
        plain_files.check_no_pipes(place / "modules")
    of_user = config.names_of_user()
    settings = config.settings_of(common, found.own, found.path, hooks, of_user)
    _compare(found, ours, named, is_sparse=(_SPARSE, "true") in settings)
    view = ours / ("view-with-hooks" if hooks else "view")
    _make_folders(common, "filter.lfs.clean" in of_user)
    with git.locked(ours / "view.lock"):  # another thread may be about to make it
        _write_view(view, common, config.text_of(settings), hooks)
    return view


def forget(home: Path, folder: Path) -> None:
    """A person names the repository anew: what it is now counts."""
    place = _place(home, folder)
    modules, remotes = (place / SUBMODULES).glob(f"*/{_RECORD}"), (place / REMOTES).glob("*")
    for record in (place / _RECORD, *modules, *remotes):
        with suppress(FileNotFoundError):
            record.unlink()


def folder_for(repo: git.Checkout) -> Path:
    """Where the home folder keeps what it knows of a repository."""
    return repo.ours.parent


def stamp_of(repo: git.Checkout, path: Path) -> Path:
    """The file that says that a work tree was set up (`setups.py`)."""
    digest = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]
    return folder_for(repo) / "setups" / digest


def outer(folder: Path) -> Path | None:
    """The work tree in which a folder lies, if it lies in one."""
    return next((above for above in folder.resolve().parents if (above / ".git").exists()), None)


def alternates_of(common: Path) -> frozenset[str]:
    """The object folders of other repositories that a repository reads."""
    path = common / "objects" / "info" / "alternates"
    if not os.path.lexists(path):
        return frozenset()
    lines = os.fsdecode(bytes_of(path, plain_files.LINE_BYTES_MAX)).splitlines()
    return frozenset(line for line in lines if line)


def _place(home: Path, folder: Path) -> Path:
    """By the path that the user named: a link in its place does not make another one of it."""
    return home.resolve() / FOLDER / hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]


def _git_folders(folder: Path) -> tuple[Path, Path]:
    """The git folder of a work tree, and the one that it shares."""
    dot = folder / ".git"
    if dot.is_dir():
        own = dot.resolve()
        if os.path.lexists(own / "commondir"):  # only worktrees share a folder
            raise NotPlain(f"{own / 'commondir'} leads into another repository")
        return own, own
    kind, _, target = line_of(dot).partition(" ")
    if kind != "gitdir:" or not target:
        raise NotPlain(f"{dot} names no git folder")
    own = followed(folder / target)
    if not os.path.lexists(own / "commondir"):
        return own, own
    common = followed(own / line_of(own / "commondir"))
    if own.parent != common / "worktrees" or real(own / line_of(own / "gitdir")) != dot:
        raise NotPlain(f"{dot} leads to {shown(own)}, which is no record of this folder")
    return own, common


def was_sparse(repo: git.Checkout) -> bool:
    """Whether the user leaves files out: git says so now, as when Fairlane saw it first."""
    known = json.loads(bytes_of(folder_for(repo) / _RECORD, _RECORD_BYTES_MAX))
    return known.get("sparse", True) and git.configured(repo, _SPARSE) == "true"


def _compare(found: _Found, ours: Path, named: Path, is_sparse: bool) -> None:
    """A repository stays what it was when Fairlane saw it first."""
    record = ours / _RECORD
    if not os.path.lexists(record):
        ours.mkdir(mode=0o700, parents=True, exist_ok=True)
        document = {name: str(getattr(found, name)) for name in _PLACES}
        more = {"alternates": sorted(found.alternates), "sparse": is_sparse}
        replace(record, json.dumps(document | more) + "\n")
        return
    try:
        known = json.loads(bytes_of(record, _RECORD_BYTES_MAX))
        before = {name: Path(known[name]) for name in _PLACES}
        alternates = frozenset(known["alternates"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotPlain(f"{record} is damaged") from error
    hint = f"If you changed it: `fairlane project set PROJECT --repo {named}` accepts it."
    for name, was in before.items():
        if was != (now := getattr(found, name)):
            what = "the repository" if name == "path" else f"{found.path / '.git'}"
            raise Unsafe(f"{what} leads to {shown(now)} now; it led to {was} before", hint)
    if new := sorted(found.alternates - alternates):
        raise Unsafe(f"{found.path} reads objects of {shown(new[0])} now", hint)


def _make_folders(common: Path, has_lfs: bool) -> None:
    """Git and git-lfs make no folder behind a link."""
    for name in ("logs", "worktrees", *(["lfs"] if has_lfs else [])):
        (common / name).mkdir(exist_ok=True)


def _write_view(view: Path, common: Path, text: str, hooks: bool) -> None:
    """A folder that git takes for the repository's: links to it, and a configuration of ours."""
    links = {name: str(common / name) for name in _wanted(common, hooks)}
    if not view.is_symlink() and _links_in(view) == links:
        if not _says(view / "config", text):
            replace(view / "config", text, view.parent)
        return
    made = Path(tempfile.mkdtemp(prefix="view.", dir=view.parent))
    for name, target in links.items():
        (made / name).symlink_to(target)
    replace(made / "config", text)
    if os.path.lexists(view):
        old = Path(tempfile.mkdtemp(prefix="old.", dir=view.parent))
        view.rename(old / "view")
        shutil.rmtree(old, ignore_errors=True)
    made.rename(view)


def _wanted(common: Path, hooks: bool) -> list[str]:
    there = [name for name in _SHARED_IF_THERE if (common / name).is_dir()]
    return [*_SHARED, *there, *(["hooks"] if hooks else [])]


def _links_in(view: Path) -> dict[str, str] | None:
    """The links of a view; None: it is none of ours."""
    try:
        names = (path.name for path in view.iterdir())
        entries = [view / name for name in names if name != "config" and not name.endswith(".lock")]
        return {path.name: str(path.readlink()) for path in entries}
    except OSError:
        return None


def _says(path: Path, text: str) -> bool:
    try:
        return bytes_of(path, 2 * _RECORD_BYTES_MAX) == os.fsencode(text)
    except NotPlain:
        return False


def replace(path: Path, text: str, beside: Path | None = None) -> None:
    """Write a small file whole; the part before it is whole lies in `beside`."""
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=beside or path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(os.fsencode(text))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
