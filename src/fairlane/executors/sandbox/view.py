"""What an agent in a sandbox sees: its own folders, its program, and what every program needs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairlane.careful_files import make_own
from fairlane.executors.base import Orders
from fairlane.model.record import dataclass
from fairlane.model.sandbox import SandboxSettings

#: Programs and libraries.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
#: Of /etc what programs need to find users, hosts, libraries and certificates, and no secrets.
ETC = (
    "alternatives", "bash.bashrc", "ca-certificates*", "crypto-policies", "debian_version",
    "environment", "fonts", "gai.conf", "gitconfig", "group", "host.conf", "hostname", "hosts",
    "inputrc", "java*", "ld.so.*", "localtime", "locale*", "lsb-release", "machine-id", "magic*",
    "mime.types", "nsswitch.conf", "os-release", "passwd", "perl", "pki/ca-trust", "pki/tls/certs",
    "pki/tls/cert.pem", "profile", "profile.d", "protocols", "python3*", "resolv.conf", "services",
    "shells", "ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "terminfo", "timezone", "xdg",
)  # fmt: skip
#: Of /proc what changes the kernel and not a process.
KERNEL = tuple(f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs"))
#: Devices that hold nothing. Your terminals are in /dev/pts: what is typed there could be read.
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))


@dataclass(frozen=True, slots=True)
class Visible:
    """Paths that an agent may read, and paths that it may change."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()

    def and_write(self, path: str) -> Visible:
        """With one more that it may change."""
        return Visible(self.read, (*self.write, path))


NOTHING = Visible()


def visible(orders: Orders, settings: SandboxSettings, own: Visible) -> Visible:
    """What is shown of this machine, besides `system`: paths that exist, each once."""
    env = orders.env
    read = [*own.read, *_program(orders.argv[0], env), *_fairlane()]
    read += [_expanded(path, env) for path in settings.read or ()]
    write = [str(orders.cwd), *own.write]
    write += [_expanded(path, env) for path in settings.write or ()]
    there = [path for path in dict.fromkeys(read) if Path(path).exists() and not _is_system(path)]
    return Visible(
        tuple(there), tuple(path for path in dict.fromkeys(write) if Path(path).exists())
    )


def with_socket(seen: Visible, env: Mapping[str, str]) -> Visible:
    """The same and the folder of the attempt's socket, made for its runner."""
    socket = env.get("FAIRLANE_SOCKET")
    if socket and make_own(Path(socket).parent):
        return Visible((*seen.read, str(Path(socket).parent)), seen.write)
    return seen


def system() -> tuple[str, ...]:
    """The parts of the system that every agent sees, as they are called here."""
    names = [str(name) for pattern in ETC for name in sorted(Path("/etc").glob(pattern))]
    links = [str(Path(name).resolve()) for name in ("/etc/resolv.conf", "/etc/localtime")]
    paths = [*SYSTEM, *names, *(path for path in links if not path.startswith(("/etc/", "/usr/")))]
    return tuple(path for path in dict.fromkeys(paths) if Path(path).exists())


def secret_in(path: str, home: Path, store: Path | None) -> Path | None:
    """What of the store and the tokens a path would show; None: nothing."""
    shown, home = Path(path).resolve(), home.resolve()
    if shown.parent == home and not shown.is_dir():
        return shown
    places = (home, store.resolve()) if store else (home,)
    return next((place for place in places if place.is_relative_to(shown)), None)


def config_folders(places: tuple[tuple[str, str], ...], env: Mapping[str, str]) -> tuple[str, ...]:
    """An agent's own folders, made where they are missing: (variable, folder without it)."""
    folders = []
    for variable, default in places:
        folder = Path(env.get(variable) or _expanded(default, env))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folders.append(str(folder))
    return tuple(folders)


def without_git_settings(env: Mapping[str, str], seen: Visible) -> dict[str, str]:
    """Variables with which git leaves your own settings alone, unless they are shown.

    Under Landlock the file is there and cannot be read, and then git does nothing at all.
    """
    mine = Path(env.get("HOME", "/root")) / ".gitconfig"
    shown = any(mine.is_relative_to(path) for path in (*seen.read, *seen.write))
    return dict(env) if shown else {"GIT_CONFIG_GLOBAL": os.devnull, **env}


def _expanded(path: str, env: Mapping[str, str]) -> str:
    """A path in which `~` is the agent's home folder."""
    return env.get("HOME", "/root") + path[1:] if path.startswith("~/") else path


def _is_system(path: str) -> bool:
    return any(Path(path).is_relative_to(place) for place in SYSTEM)


def _fairlane() -> Iterator[str]:
    """This program, so that an agent can report: Python must be able to list its folder."""
    yield from (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]))


def _program(name: str, env: Mapping[str, str]) -> Iterator[str]:
    """The folders of a program, and of the interpreter that its first line names."""
    if "/" in name and not name.startswith("/"):
        return  # it lies in the work folder, and not where this process happens to be
    found = shutil.which(name, path=env.get("PATH"))
    if found is None:
        return
    real, user = Path(found).resolve(), Path(env.get("HOME", "/root")).resolve()
    for program, folder in ((Path(found), Path(found).parent), (real, _package(real))):
        # Of a program beside your own files it sees the program alone.
        yield str(program if user.is_relative_to(folder.resolve()) else folder)
    try:
        with real.open("rb") as file:
            first = file.read(256).split(b"\n")[0].decode(errors="replace")
    except OSError:
        return
    if first.startswith("#!"):
        words = first[2:].split()
        words = words[1:] if words and words[0].endswith("/env") else words
        if words and words[0] != name:
            yield from _program(words[0], env)


def _package(program: Path) -> Path:
    """The folder of a program; of one in `node_modules` that with all its packages."""
    folders = [folder for folder in program.parents if folder.name == "node_modules"]
    return folders[-1] if folders else program.parent
