"""`fairlane service`: the daemon as a user unit of systemd or launchd."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, safe, write
from fairlane.model.errors import Refused

SYSTEMD, LAUNCHD = "systemd", "launchd"
NAME, LABEL = "fairlane.service", "fairlane.up"


@click.group("service")
def command() -> None:
    """Start the daemon when you log in, and again if it dies.

    \b
    Example:
      fairlane service install
    """


@command.command("install")
@click.option(
    "--kind", type=click.Choice([SYSTEMD, LAUNCHD]), help="Default: what this system has."
)
@click.option("--force", is_flag=True, help="Write over another one.")
@common
@pass_call
def install(call: Call, kind: str | None, force: bool) -> None:
    """Write the unit for this home folder, and say how it is switched on. Starts nothing.

    \b
    Example:
      fairlane service install
      fairlane --home ~/queues/night service install --kind systemd
    """
    kind = kind or (LAUNCHD if sys.platform == "darwin" else SYSTEMD)
    words = [sys.executable, "-m", "fairlane", "--home", str(call.folder), "up"]
    path = os.environ.get("PATH", os.defpath)  # units see hardly any: agents would not be found
    if kind == SYSTEMD:
        file, text = _config() / "systemd" / "user" / NAME, systemd_unit(words, path)
        then = [
            "systemctl --user daemon-reload",
            f"systemctl --user enable --now {NAME}",
            "loginctl enable-linger    # to go on when you log out",
        ]
    else:
        log = str(call.folder / "daemon.log")
        file = Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        text, then = launchd_agent(words, path, log), [f"launchctl load -w {file}"]
    _write(file, text, force)
    if call.json:
        print_json({"schema": "fairlane/1", "file": str(file), "kind": kind, "then": then})
    else:
        write(
            f"wrote {safe(file)}\nSwitch it on:\n" + "".join(f"  {safe(line)}\n" for line in then)
        )


def systemd_unit(words: list[str], path: str) -> str:
    """Only the daemon is ended by a stop: agents go on, and the next daemon adopts them."""
    started = " ".join(_quoted(word) for word in words)
    return (
        "[Unit]\nDescription=Fairlane, the scheduler for coding agents\n\n"
        f"[Service]\nType=simple\nExecStart={started}\n"
        f"Environment={_quoted('PATH=' + path)}\n"
        "Restart=on-failure\nRestartSec=2\nKillMode=process\n\n"
        "[Install]\nWantedBy=default.target\n"
    )


def launchd_agent(words: list[str], path: str, log: str) -> str:
    """The same for launchd; what it prints goes to the daemon's log."""
    import plistlib

    told = {
        "Label": LABEL,
        "ProgramArguments": words,
        "EnvironmentVariables": {"PATH": path},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "AbandonProcessGroup": True,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    return plistlib.dumps(told).decode()


def _quoted(word: str) -> str:
    """A word of a unit file: nothing in it is looked at again."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"'


def _config() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _write(file: Path, text: str, force: bool) -> None:
    if file.exists() and not force and file.read_text(encoding="utf-8") != text:
        raise Refused(f"{file} is there and says something else", "Look at it, or: --force.")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
