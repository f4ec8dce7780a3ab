"""Reading: commits of a repository through a git folder of ours that has its objects and no more.

No attributes, no configuration and no references of the repository count there: an agent can
write them, and could hide what it changed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from fairlane.model.record import dataclass
from fairlane.workspaces import config, git, repository

#: A larger file counts as binary: its lines are neither read nor counted.
TEXT_BYTES_MAX = 32 << 20
#: How long one look may take.
SECONDS = 60.0
_SETTINGS = (
    ("core.attributesFile", os.devnull),
    ("core.bigFileThreshold", str(TEXT_BYTES_MAX)),
    ("core.quotePath", "true"),
)


@dataclass(frozen=True, slots=True)
class Reader:
    """Where commits are read, and objects that the repository does not have."""

    folder: Path
    shallow: Path
    objects: Path | None = None

    @contextmanager
    def output(self, *words: str, seconds: float = SECONDS) -> Iterator[IO[bytes]]:
        """What git prints, while it prints it."""
        env = git.environment(_SETTINGS) | {
            "GIT_DIR": str(self.folder),
            "GIT_SHALLOW_FILE": str(self.shallow),
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }
        if self.objects is not None:
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(self.objects)
        with git.output(self.folder, words, env, seconds) as pipe:
            yield pipe


def reader_of(repo: git.Checkout, objects: Path | None = None) -> Reader:
    """A reader of a repository; `objects`: a folder with more of them."""
    folder, target = repository.folder_for(repo) / "reading", repo.common / "objects"
    if not _leads_to(folder, target):
        _make(folder, repo, target)
    return Reader(folder, repo.common / "shallow", objects)


def _leads_to(folder: Path, target: Path) -> bool:
    try:
        return (folder / "objects").readlink() == target
    except OSError:
        return False


def _make(folder: Path, repo: git.Checkout, target: Path) -> None:
    """Another process may make it at the same time: whole folders take each other's place."""
    form = git.run(repo, "rev-parse", "--show-object-format")
    settings = [("core.repositoryformatversion", "1"), ("core.bare", "true")]
    made = Path(tempfile.mkdtemp(prefix="reading.", dir=folder.parent))
    (made / "refs").mkdir()
    (made / "HEAD").write_text("ref: refs/heads/none\n", "utf-8")
    (made / "objects").symlink_to(target)
    text = config.text_of([*settings, ("extensions.objectformat", form)])
    (made / "config").write_text(text, "utf-8")
    if os.path.lexists(folder):
        with suppress(FileNotFoundError):
            folder.rename(f"{made}.old")
        shutil.rmtree(f"{made}.old", ignore_errors=True)
    try:
        made.rename(folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not _leads_to(folder, target):
            raise
