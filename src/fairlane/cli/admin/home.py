"""The home folder: init, doctor, service, backup, migrate, completion."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import count, paint, safe, wrapped
from fairlane.model.errors import FairlaneError, Refused

if TYPE_CHECKING:
    from fairlane.model.documents.admin import FindingDocument, InitAnswer


@click.command("init")
@takes_call
def init(call: Call) -> None:
    """Make the home folder: store, settings and policy with comments. Overwrites nothing.

    \b
    Example:
      fairlane init
      fairlane --home ~/queues/night init
    """
    from fairlane.service.home import setup

    call.take_in_old_home()
    document = setup.init(call.folder)
    with call.context():
        pass  # the store is made, and the settings are read once
    call.show(document, lambda: _made_text(document))


def _made_text(document: InitAnswer) -> str:
    lines = [paint(f"made {safe(path)}", "green") for path in document["made"]]
    lines += [f"kept {safe(path)}" for path in document["kept"]]
    names = [f"{agent['name']} ({agent['path']})" for agent in document["agents"]]
    known = "claude, codex, gemini, opencode"
    agents = f"No agent is on the path ({known}). Without one: --agent demo, or -- COMMAND."
    if names:
        agents = f"Agents found: {', '.join(names)}."
    return "\n".join([*lines, wrapped(safe(agents), 0), 'Next: fairlane add "…"'])


_TINT = {"wrong": "red", "note": "yellow", "fine": "green"}


@click.command("doctor")
@takes_call
def doctor(call: Call) -> int:
    """All that is wrong, and what would be recovered. Changes nothing; exit 1 if one is wrong.

    \b
    Example:
      fairlane doctor
    """
    from fairlane.app import STORE_FILE, former_home
    from fairlane.runtime.lock import holder
    from fairlane.service.home import doctor

    url = f"sqlite:{call.folder / STORE_FILE}"
    document = doctor.examine(
        call.folder, call.db, url, call.clock, former_home(call.home), holder(call.folder)
    )
    call.show(document, lambda: _findings_text(document["findings"]))
    return 0 if document["ok"] else 1


def _findings_text(findings: list[FindingDocument]) -> str:
    wide = max(len(finding["what"]) for finding in findings)
    lines = []
    for finding in findings:
        level = finding["level"]
        lead = f"  {level:5}  {finding['what']:{wide}}  "
        text = wrapped(safe(finding["message"]), len(lead), lead)
        lines.append(text.replace(level, paint(level, _TINT[level]), 1))
        if finding["hint"] and level != "fine":
            lines.append(paint(wrapped(safe(finding["hint"]), len(lead)), "dim"))
    wrong = sum(finding["level"] == "wrong" for finding in findings)
    end = (
        f"{count(wrong, 'thing')} {'is' if wrong == 1 else 'are'} wrong."
        if wrong
        else "All is well."
    )
    return "\n".join([*lines, paint(end, "bold", "red" if wrong else "green")])


SYSTEMD, LAUNCHD = "systemd", "launchd"
NAME, LABEL = "fairlane.service", "fairlane.up"


@click.group("service")
def service() -> None:
    """Start the daemon when you log in, and again if it dies.

    \b
    Example:
      fairlane service install
    """


@service.command("install")
@click.option(
    "--kind", type=click.Choice([SYSTEMD, LAUNCHD]), help="Default: what this system has."
)
@click.option("--force", is_flag=True, help="Write over another one.")
@takes_call
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
        config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        file, text = config / "systemd" / "user" / NAME, systemd_unit(words, path)
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
    document = {"schema": "fairlane/1", "file": str(file), "kind": kind, "then": then}
    lines = [f"wrote {file}", "Switch it on:", *(f"  {line}" for line in then)]
    call.show(document, lambda: "\n".join(map(safe, lines)))


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
    """The same for launchd; its output is appended to the daemon's log."""
    import plistlib

    agent = {
        "Label": LABEL,
        "ProgramArguments": words,
        "EnvironmentVariables": {"PATH": path},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "AbandonProcessGroup": True,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    return plistlib.dumps(agent).decode()


def _quoted(word: str) -> str:
    """A word of a unit file, with everything special in it escaped."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"'


def _write(file: Path, text: str, force: bool) -> None:
    if file.exists() and not force and file.read_text(encoding="utf-8") != text:
        raise Refused(f"{file} is there and says something else", "Look at it, or: --force.")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@click.command("backup")
@click.argument("target", required=False, metavar="[FILE|FOLDER]", type=click.Path(path_type=Path))
@takes_call
def backup(call: Call, target: Path | None) -> None:
    """A consistent copy of the store, while others work. Default: into its folder backups.

    \b
    Example:
      fairlane backup
      fairlane backup /mnt/usb/fairlane.db
    """
    from fairlane.service.home import upkeep

    with call.context() as context:
        document = upkeep.backup(context, target)
    call.show(
        document,
        lambda: safe(f"copied to {document['backup']} ({document['bytes'] // 1024:,} KiB)"),
    )


@click.command("migrate")
@click.option("--from", "source", metavar="URL", help="Copy from this store …")
@click.option("--to", "target", metavar="URL", help="… to this one.")
@takes_call
def migrate(call: Call, source: str | None, target: str | None) -> None:
    """Bring the store to the latest schema, after a backup, and say so.

    \b
    Example:
      fairlane migrate
    """
    from fairlane.app import STORE_FILE
    from fairlane.service.home import upkeep
    from fairlane.settings import FILE, Settings
    from fairlane.store.sqlite.migrate import schema_at

    upkeep.refuse_copying(source, target)
    call.take_in_old_home()
    url = call.db or Settings.load(call.folder / FILE).store.url
    path = upkeep.sqlite_path(url or f"sqlite:{call.folder / STORE_FILE}")
    before = None if path is None else schema_at(path)
    with call.context() as context:
        document = upkeep.migrated(before, context)
    store, was, now = document["store"], document["from"], document["to"]
    text = f"{store}: schema {was} was brought to {now}"
    if was is None:
        text = f"made {store} with schema {now}"
    elif was == now:
        text = f"{store} has schema {now}, the latest"
    call.show(document, lambda: safe(text))


SHELLS = ("bash", "zsh", "fish")
#: The variable by which the shell asks for completions.
VARIABLE = "_FAIRLANE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@takes_call
def completion(call: Call, shell: str) -> None:
    """The completion script of a shell, on standard output.

    \b
    Example:
      eval "$(fairlane completion bash)"             # in ~/.bashrc
      eval "$(fairlane completion zsh)"              # in ~/.zshrc
      fairlane completion fish > ~/.config/fish/completions/fairlane.fish
    """
    from click.shell_completion import get_completion_class

    from fairlane.cli.commands import fairlane

    kind = get_completion_class(shell)
    if kind is None:
        raise FairlaneError(f"there is no completion for {shell}")
    complete = kind(fairlane, {}, "fairlane", VARIABLE)
    text = complete.source_template % complete.source_vars()  # without asking the shell's version
    call.show({"schema": "fairlane/1", "shell": shell, "script": text}, lambda: text)
