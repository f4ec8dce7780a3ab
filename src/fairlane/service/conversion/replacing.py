"""Replacing: several files change together, or none; what they were is kept beside them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from fairlane.model.errors import Invalid
from fairlane.policy.edit import free_backup

#: Permissions of a file that was not there before: settings may hold secrets.
_NEW_MODE = 0o600


class Replacing:
    """New texts wait beside their files; `replace` puts them there; an error puts all back."""

    def __init__(self, texts: Mapping[Path, str]) -> None:
        self._texts = texts
        self._staged: dict[Path, Path] = {}
        self.backups: dict[Path, Path | None] = {}  # of what was replaced; None: there was none

    def __enter__(self) -> Replacing:
        try:
            for path, text in self._texts.items():
                self._staged[path] = _stage(path, text)
        except OSError as error:
            self._discard()
            raise _unwritable(path, error) from error
        return self

    def replace(self) -> None:
        """The new texts take their places."""
        for path, staged in self._staged.items():
            try:
                self.backups[path] = _backed_up(path) if path.exists() else None
                staged.replace(path.resolve())
            except OSError as error:
                raise _unwritable(path, error) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is not None:
            for path, backup in self.backups.items():
                if backup is None:
                    path.unlink(missing_ok=True)
                else:
                    backup.replace(path.resolve())
        self._discard()

    def _discard(self) -> None:
        for staged in self._staged.values():
            staged.unlink(missing_ok=True)


def _backed_up(path: Path) -> Path:
    backup = free_backup(path)
    shutil.copy2(path, backup)
    return backup


def _stage(path: Path, text: str) -> Path:
    target = path.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    staged = Path(name)
    staged.chmod(target.stat().st_mode & 0o7777 if target.exists() else _NEW_MODE)
    return staged


def _unwritable(path: Path, error: OSError) -> Invalid:
    hint = "Nothing was changed; check the folder's permissions and free space."
    return Invalid(f"{path}: cannot be written: {error.strerror}", hint)
