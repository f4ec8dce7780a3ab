"""The sandbox of an attempt: what its agent sees, by bubblewrap or by Landlock, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlane.executors.base import Orders, Sandbox
from fairlane.executors.sandbox import machine, view
from fairlane.model.errors import Shortage
from fairlane.model.instant import SECOND
from fairlane.model.record import replace
from fairlane.model.sandbox import SandboxSettings

#: Folders that bubblewrap gives to each agent anew.
PRIVATE = ("/tmp", "/var/tmp")  # noqa: S108


def confined(
    orders: Orders,
    settings: SandboxSettings,
    home: Path,
    own: view.Visible = view.NOTHING,
    store: Path | None = None,
) -> Orders:
    """These orders in a sandbox; `own`: what the agent needs besides its work folder.

    `store`: its file, where it is not in the home folder.

    A sandbox that this machine cannot give is a `Shortage`: nothing starts without it.
    """
    limits = Sandbox(
        "none",
        memory=settings.memory,
        processes=settings.processes,
        files=settings.files,
        cpu=None if settings.cpu is None else max(1, settings.cpu // SECOND),
    )
    if settings.kind == "none":
        return orders if limits == Sandbox("none") else replace(orders, sandbox=limits)
    problem = machine.problem_of(settings)
    if problem:
        raise Shortage(f"the sandbox cannot be made: {problem}", "`fairlane doctor` says more.")
    env = {name: text for name, text in orders.env.items() if name != "FAIRLANE_HOME"}
    seen = view.visible(orders, settings, own)
    _refuse_store((*view.system(), *seen.read, *seen.write), home, store)
    seen = view.with_socket(seen, orders.env)
    if settings.kind == "landlock":
        temporary = orders.folder / "tmp"
        temporary.mkdir(mode=0o700, exist_ok=True)
        seen = seen.and_write(str(temporary))
        box = replace(
            limits,
            kind="landlock",
            read=(*view.system(), *view.DEVICES, "/proc", *seen.read),
            write=(*view.DEVICES, *seen.write),
            temporary=str(temporary),
        )
        env = view.without_git_settings(env, seen) | _temporary(str(temporary))
        return replace(orders, sandbox=box, env=env)
    words = _bwrap(seen, orders.cwd, orders.env, network=settings.network is not False)
    box = replace(limits, kind="bwrap", words=words)
    return replace(orders, sandbox=box, env=env | _temporary(PRIVATE[0]))


def _temporary(folder: str) -> dict[str, str]:
    return {"TMPDIR": folder, "CLAUDE_CODE_TMPDIR": folder}


def _refuse_store(shown: tuple[str, ...], home: Path, store: Path | None) -> None:
    """Nothing that is shown may hold the store and the tokens."""
    for path in shown:
        if held := view.secret_in(path, home, store):
            hint = "Show a smaller folder in read or write of [sandbox]."
            if path in view.SYSTEM:
                hint = "Programs are in that folder: move the home folder or the store elsewhere."
            problem = f"it would show {path}, and {held} lies in it"
            raise Shortage(f"the sandbox cannot be made: {problem}", hint)


def _bwrap(
    seen: view.Visible, cwd: Path, env: Mapping[str, str], *, network: bool
) -> tuple[str, ...]:
    """The command line of bubblewrap, up to what it adds for its caller."""
    words = [machine.bwrap() or "bwrap", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    words += [] if network else ["--unshare-net"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for path in PRIVATE:
        words += ["--tmpfs", path]
    for path in view.KERNEL:  # root could change the machine there, without any capability
        words += ["--ro-bind-try", path, path]
    words += ["--dir", env.get("HOME", "/root")]
    for path in view.system():
        link = Path(path).is_symlink()
        words += ["--symlink", str(Path(path).readlink())] if link else ["--ro-bind", path]
        words.append(path)
    binds = [(path, "--ro-bind-try") for path in seen.read]
    binds += [(path, "--bind") for path in seen.write]
    for path, how in sorted(binds, key=lambda bind: (bind[0].count("/"), bind[1] == "--bind")):
        words += [how, path, path]
    return (*words, "--chdir", str(cwd))
