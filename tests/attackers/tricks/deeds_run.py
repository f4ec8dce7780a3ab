"""Tricks with the run folder, with artifacts and with what the agent prints."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.attackers.tricks.scene import Scene, fifo, huge, link, put, zeros


def strangers(path: Path) -> None:
    """A record that names processes of others."""
    people = {"pid": os.getppid(), "agent_pid": 1, "pid_started": "1", "agent_started": "1"}
    put(path, json.dumps(people))


def numbers(path: Path) -> None:
    """A record with numbers that no program can store."""
    names = ("exit_code", "pid", "agent_pid", "started_at", "ended_at", "dropped")
    put(path, json.dumps(dict.fromkeys(names, 10**400)))


def folder(path: Path) -> None:
    """A folder in the place of a file."""
    path.unlink(missing_ok=True)
    (path / "below").mkdir(parents=True)


def run_file(at: Scene, name: str, kind: str) -> None:
    """A file of the run folder becomes something that harms whoever reads or writes it."""
    path = at.run / name
    if kind in ("link", "dangling"):
        link(path, at.victim if kind == "link" else at.nowhere)
    elif kind in ("deep", "binary"):
        put(path, "[" * 50_000 if kind == "deep" else bytes(range(256)) * 64)
    else:
        kinds = {"fifo": fifo, "device": zeros, "huge": huge, "folder": folder}
        (kinds | {"numbers": numbers, "strangers": strangers})[kind](path)


def run_folder(at: Scene, kind: str) -> None:
    """The run folder itself, or the one of the next attempt, is something else."""
    following = at.run.parent / str(int(at.attempt) + 1)
    if kind == "link":
        at.run.rename(at.run.parent / "kept")
        at.run.symlink_to(at.user / "documents")
    elif kind == "gone":
        at.run.rename(at.run.parent / "kept")
    elif kind == "file":
        at.run.rename(at.run.parent / "kept")
        put(at.run, "no folder")
    elif kind == "next-link":
        link(following, at.user / "documents")
    elif kind == "next-fifo":
        for name in ("stdout.log", "runner.json", "prompt.md", "orders"):
            fifo(following / name)
    elif kind == "task-link":
        at.run.parent.rename(at.run.parent.with_name(f"{at.task}-kept"))
        at.run.parent.symlink_to(at.user / "documents")


def artifact(at: Scene, kind: str) -> None:
    """An artifact that leads whoever takes it somewhere else."""
    place = at.artifacts
    if kind == "link":
        link(place / "report.md", at.victim)
    elif kind == "folder":
        link(place / "folder", at.user)
    elif kind == "fifo":
        fifo(place / "report.md")
    elif kind == "huge":
        huge(place / "report.md")
    elif kind == "up":
        put(place / ".." / f"{at.name}-escaped" / "x", "x")
    elif kind == "names":
        for name in ("\x1b]0;x\x07", "a\nb", "..\\x", "\u202egpj", "~", "-"):
            put(place / name, "x")
    elif kind == "itself":
        kept = place.with_name(f"{place.name}-kept")
        place.rename(kept)
        place.symlink_to(at.user / "documents")


def say(*lines: object) -> None:
    """Records or lines on standard output."""
    for each in lines:
        sys.stdout.write((each if isinstance(each, str) else json.dumps(each)) + "\n")
    sys.stdout.flush()


#: A good final record, as one of the shipped agents prints it.
FINAL = {
    "type": "result", "subtype": "success", "is_error": False, "result": "x",
    "session_id": "../../x", "usage": {"input_tokens": 1},
}  # fmt: skip


def say_numbers() -> None:
    for number in (10**400, -1, 1e308, float("inf"), float("nan"), "9" * 5000, True, [1]):
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens")
        usage = dict.fromkeys(names, number)
        say(FINAL | {"usage": usage, "total_cost_usd": number, "num_turns": number})


def say_others() -> None:
    for field in ("task", "attempt", "lease", "fence", "session_id", "project"):
        say(FINAL | {field: "first", "task_id": "first"})


def say_controls() -> None:
    say("\x1b]0;owned\x07\x1b[2J\x1b[31m", "\x1b]8;;file:///etc/passwd\x07x", "\x9b2J\x00\x08")
    say(FINAL | {"result": "\x1b[2J\x00\u202e\u200b"})


def say_types() -> None:
    values: tuple[object, ...] = (None, [], {}, 1, "x", True)
    for value in values:
        say(dict.fromkeys(("type", "subtype", "usage", "result", "message", "item"), value))
        say({"type": "result", "usage": value}, {"type": "assistant", "message": value})


def say_throttled() -> None:
    for when in (10**18, -1, "never", None, 1e300):
        info = {"status": "rejected", "resetsAt": when, "retryAfter": when}
        say({"type": "rate_limit_event", "rate_limit_info": info})
    say(FINAL)


def say_nothing() -> None:
    os.close(1)
    os.close(2)


PRINTED = {
    "finals": lambda: say(*[FINAL] * 20_000),
    "huge-line": lambda: say("x" * (24 << 20)),
    "flood": lambda: say(*["flood " * 200] * 20_000),
    "numbers": say_numbers,
    "others": say_others,
    "controls": say_controls,
    "binary": lambda: sys.stdout.buffer.write(bytes(range(256)) * 4096 + b"\n"),
    "deep": lambda: say('{"type":' + "[" * 100_000, '{"a":' * 50_000),
    "types": say_types,
    "throttled": say_throttled,
    "no-end": lambda: sys.stdout.write('{"type":"result","subtype":"success"'),
    "closed": say_nothing,
    "stderr": lambda: sys.stderr.write("x" * (8 << 20) + "\n"),
}


def printed(at: Scene, kind: str) -> None:
    """Output that lies, floods, or harms a terminal or a parser."""
    PRINTED[kind]()
    with contextlib.suppress(OSError):
        sys.stdout.flush()


def log_again(at: Scene, name: str) -> None:
    """The log is cut and written anew under the runner."""
    put(Path(at.run / name), '{"type":"result","subtype":"success","task":"innocent"}\n' * 1000)
