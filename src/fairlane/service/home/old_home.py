"""Old homes: those under the product's old name are taken in; old daemons are not disturbed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from fairlane.engine.context import STORE_FILE
from fairlane.model.errors import Refused, TryLater
from fairlane.model.names import OLD_NAME
from fairlane.settings import FILE

#: Old names of files in a home folder, and what they are called now. The store is renamed last:
#: while it has its old name, the folder counts as not taken in.
_RENAMED = {f"{OLD_NAME}.toml": FILE, f"{OLD_NAME}.db": STORE_FILE}


def refuse(home: Path, former: Path | None = None) -> None:
    """Do not start an empty queue next to an old one. `former`: where the old default home was."""
    folder = _old(home, former)
    if folder is not None:
        where = f"--home {home} " if former is None else ""
        message = f"{folder} was written by an older version, under the name {OLD_NAME}"
        raise Refused(message, f"`fairlane {where}migrate` takes it in.", code="old_home")


def take_in(
    home: Path,
    former: Path | None,
    daemon: Callable[[Path], Mapping[str, object] | None],
    say: Callable[[str], None],
) -> None:
    """Rename what the older version wrote; nothing in it changes. Safe to repeat after a crash.

    `daemon` tells who schedules a home folder now.
    """
    folder = _old(home, former)
    if folder is None:
        return
    _refuse_in_use(folder, daemon(folder))
    if folder != home:
        _move(folder, home)
        say(f"moved {folder} to {home}")
    if former is not None:
        _follow_move(former, home)
    for old, new in _RENAMED.items():
        if (home / old).exists() and not (home / new).exists():
            if new == STORE_FILE:
                _close_log(home / old)
                _rename_backups(home / "backups")
            (home / old).rename(home / new)
            say(f"took in {home / old}: it is {new} now")


def _old(home: Path, former: Path | None) -> Path | None:
    """The folder that is to be taken in as this home, if there is one."""
    if _is_old(home):
        return home
    fresh = not any((home / name).exists() for name in _RENAMED.values())
    return former if former is not None and fresh and _is_old(former) else None


def _is_old(folder: Path) -> bool:
    return any(
        (folder / old).exists() and not (folder / new).exists() for old, new in _RENAMED.items()
    )


def _refuse_in_use(folder: Path, daemon: Mapping[str, object] | None) -> None:
    """Agents of the older version end under its own rules."""
    if daemon is not None:
        pid = daemon.get("pid")
        hint = f"Stop it: kill {pid}. Its agents continue."
        raise Refused(f"the older version still schedules {folder} (pid {pid})", hint, "old_daemon")
    alive = sorted(_alive(folder))
    if alive:
        message = f"agents that the older version started still run: {', '.join(alive)}"
        raise Refused(message, "Wait until they have ended, then try again.", code="old_runners")


def old_daemon(daemon: Mapping[str, object]) -> Refused:
    """Why a store of an older schema stays as it is while `daemon` runs."""
    pid = f" (pid {daemon['pid']})" if daemon["pid"] else ""
    message = f"`fairlane {daemon['what']}` of the version before runs{pid}"
    hint = "`fairlane down` ends it; agents go on. Then do this again."
    return Refused(message, hint, "old_daemon")


def refuse_old_server(folder: Path) -> None:
    """A server of an older version, without a daemon, can answer nothing more after a migration."""
    try:
        record = json.loads((folder / "server.json").read_text(encoding="utf-8"))
        pid = int(record["pid"])
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError, KeyError, TypeError):
        return
    if b"serve" in words:  # its number may be another process's by now
        message = f"`fairlane serve` of the version before runs (pid {pid})"
        raise Refused(message, f"Stop it: kill {pid}. Then do this again.", "old_daemon")


def _alive(folder: Path) -> Iterable[str]:
    """Tasks whose runner lives."""
    from fairlane.executors import executor_named

    executor = executor_named("process")
    for attempt in folder.glob("runs/*/*"):
        if executor.adopt(attempt) is not None:
            yield attempt.parent.name


def _move(folder: Path, home: Path) -> None:
    home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        folder.rename(home)
    except OSError as error:
        hint = (
            f"Empty {home}, or take the old one in where it is, `fairlane --home {folder} migrate`,"
            f" and name it from then on: FAIRLANE_HOME={folder}."
        )
        message = f"{folder} cannot be moved to {home}: {error.strerror}"
        raise Refused(message, hint, code="old_home") from error


def _follow_move(former: Path, home: Path) -> None:
    """Git knows a worktree by its path: correct what its repository says of those that moved."""
    for link in sorted(home.glob("worktrees/*/*/.git")):
        try:
            admin = Path(link.read_text(encoding="utf-8").removeprefix("gitdir: ").strip())
            was = str(former / link.relative_to(home))
            if (admin / "gitdir").read_text(encoding="utf-8").strip() == was:
                (admin / "gitdir").write_text(f"{link}\n", encoding="utf-8")
        except (OSError, ValueError):
            continue  # `fairlane workspaces` says what is wrong with it


def _close_log(store: Path) -> None:
    """Everything in the one file that is renamed; nobody else has it open."""
    import sqlite3

    from fairlane.store.sqlite.file import corrupt
    from fairlane.store.sqlite.store import explained

    with explained(store):
        connection = sqlite3.connect(store, timeout=2, isolation_level=None)
        try:
            answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if answer != "ok":
                raise corrupt(store, answer)
            mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        finally:
            connection.close()
    if mode != "delete":
        raise TryLater(f"{store} is in use", "Stop whatever uses it, then try again.", "busy")


def _rename_backups(folder: Path) -> None:
    for file in folder.glob(f"{OLD_NAME}-*.db"):
        target = file.with_name(file.name.replace(OLD_NAME, Path(STORE_FILE).stem, 1))
        if not target.exists():
            file.rename(target)
