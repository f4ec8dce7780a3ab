"""loopr's folder: where the prompts and artifacts of its loops are."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from fairlane.careful_files import read_file
from fairlane.intake.routing import artifact_exists
from fairlane.model.errors import Invalid
from fairlane.model.values import line

STORE = ".taskstore"
HOME = ".loopr"
_OVER = ("complete", "invalidated")
#: No prompt is larger, and all of them together are not.
PROMPT_BYTES_MAX, PROMPTS_BYTES_MAX = 200_000, 500_000_000


#: What loops have yet to write -> the loops that will.
Outputs = Mapping[str, Collection[object]]


class Folder:
    """The folder of one loopr project, found from its file of loops."""

    def __init__(self, loops: Path) -> None:
        here = loops.absolute().parent
        self.root = here.parent if here.name == STORE else here
        #: Prompts are read in loopr's own folders alone.
        self._own = [self.root, *(up for up in self.root.parents if up.name == HOME)]
        self._loops = self.root / "loops"
        self._shared: dict[Path, Path | None] = {}
        self._texts: dict[Path, str] = {}
        self._bytes = 0

    def artifact(self, written: object, loop: object = None) -> str:
        """An artifact's path: absolute, or in loopr's folder, or in that of one loop."""
        path = _path(written)
        return os.path.normpath((self._of(loop) or self.root) / path)

    def input(self, written: object, parent: object, shared: Outputs) -> str:
        """Where an input is: what its parent will leave, or has left in its last iteration."""
        path = _path(written)
        if str(parent) in shared.get(str(written), ()):
            return self.artifact(written, parent)
        if (theirs := self._of(parent)) and not path.is_absolute():
            for place in ("", "current/artifacts", "artifacts"):
                made = os.path.normpath(theirs / place / path)
                if artifact_exists(None, made):
                    return made
        return self.artifact(written)

    def _of(self, loop: object) -> Path | None:
        """A loop's own folder; None for an id that cannot be a folder's name."""
        if not isinstance(loop, str) or loop in ("", ".", "..") or not loop.isprintable():
            return None
        return None if "/" in loop else self._loops / loop

    def prompt(self, loop: str, written: object) -> str:
        """The text of a prompt file; one that is missing, too large or elsewhere is refused."""
        name = line(written)
        path = self._find(loop, _path(written))
        if path is None:
            raise Invalid(f"there is no {name} in {self.root}")
        if path not in self._texts:
            self._texts[path] = self._read(path)
        text = self._texts[path]
        self._bytes += len(text)
        if self._bytes > PROMPTS_BYTES_MAX:
            raise Invalid(f"the prompts of the loops are larger than {PROMPTS_BYTES_MAX:,} bytes")
        return text

    def _find(self, loop: str, path: Path) -> Path | None:
        """Its file, in its loop's own folder or where the prompts of all loops are."""
        own = self._of(loop) if self._loops.is_dir() else None
        if own and (found := self._inside(own, path)):
            return found
        if path not in self._shared:
            found_all = (self._inside(own, path) for own in self._own)
            self._shared[path] = next(filter(None, found_all), None)
        return self._shared[path]

    def _inside(self, place: Path, path: Path) -> Path | None:
        if not os.path.isfile(place / path):  # noqa: PTH113 - false where it may not be looked at
            return None
        target = Path(os.path.realpath(place / path))
        if not any(target.is_relative_to(os.path.realpath(own)) for own in self._own):
            raise Invalid(f"{path} lies outside of {self.root}")
        return target

    def _read(self, path: Path) -> str:
        try:
            return read_file(path, PROMPT_BYTES_MAX).decode("utf-8-sig")
        except OSError as error:
            raise Invalid(f"{path}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise Invalid(f"{path}: not UTF-8 text") from error


def shared_outputs(rows: Iterable[Mapping[str, object]]) -> dict[str, set[object]]:
    """Outputs of one name that several loops have yet to write: each writes into its own folder."""
    writers: dict[str, set[object]] = {}
    for row in rows:
        outputs = row.get("output_artifacts")
        if row.get("status") not in _OVER and isinstance(outputs, list):
            for name in outputs:
                writers.setdefault(str(name), set()).add(str(row.get("id")))
    return {name: loops for name, loops in writers.items() if len(loops) > 1}


def latest(rows: Mapping[int, Mapping[str, object]]) -> dict[int, Mapping[str, object]]:
    """loopr appends: of several lines with one id the newest counts, and none that is deleted."""
    newest: dict[object, int] = {}
    for at, row in rows.items():
        name = row.get("id") if isinstance(row.get("id"), str) else ("line", at)
        before = newest.get(name)
        if before is None or _time(row) >= _time(rows[before]):
            newest[name] = at
    return {at: rows[at] for at in sorted(newest.values()) if rows[at].get("deleted") is not True}


def _time(row: Mapping[str, object]) -> float:
    at = row.get("updated_at")
    return at if isinstance(at, int | float) and not isinstance(at, bool) else 0


def _path(written: object) -> Path:
    try:
        return Path(line(written)).expanduser()
    except RuntimeError as error:  # nobody's home folder
        raise Invalid(f"{written}: there is no such home folder") from error
