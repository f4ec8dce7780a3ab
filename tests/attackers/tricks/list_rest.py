"""The tricks with run folders, output, artifacts, processes and files."""

from __future__ import annotations

from collections.abc import Iterator

from tests.attackers.tricks import deeds_processes, deeds_run
from tests.attackers.tricks.list_git import slug
from tests.attackers.tricks.trick import Trick

RUN_FILES = (
    "prompt.md", "stdout.log", "stderr.log", "events.jsonl", "result.json", "exit.json",
    "runner.json", "exit.json.new", "result.json.new", "revoked", "orders",
)  # fmt: skip
RUN_KINDS = ("link", "dangling", "fifo", "device", "huge", "deep", "binary", "folder")
#: How a process tries to stay.
WAYS = (
    "held", "session", "session+twice", "session+empty", "twice+empty", "session+twice+empty",
    "session+twice+deaf", "session+twice+empty+deaf", "session+twice+empty+deaf+held",
)  # fmt: skip


def run_folders() -> Iterator[Trick]:
    for name in RUN_FILES:
        for kind in RUN_KINDS:
            says = f"the daemon follows, reads or waits for {name} of the run folder ({kind})"
            words, batch = (name, kind), "" if name == "stdout.log" else f"run-{kind}"
            trick = slug("run", name, kind)
            yield Trick("run folder", trick, says, deeds_run.run_file, words, batch)
    for name in ("exit.json", "runner.json"):
        for kind in ("numbers", "strangers"):
            says = f"the daemon believes {name} about processes and numbers ({kind})"
            words = (name, kind)
            yield Trick("run folder", slug("run", name, kind), says, deeds_run.run_file, words)
    for kind in ("link", "gone", "file", "next-link", "next-fifo", "task-link"):
        says = f"the daemon works in a run folder that leads elsewhere ({kind})"
        code = int(kind.startswith("next"))
        name = slug("run-folder", kind)
        yield Trick("run folder", name, says, deeds_run.run_folder, (kind,), exit_code=code)
    for name in ("stdout.log", "stderr.log"):
        says = f"{name} is written anew under the runner, with records of others"
        yield Trick("run folder", slug("again", name), says, deeds_run.log_again, (name,))


def output() -> Iterator[Trick]:
    for kind in deeds_run.PRINTED:
        says = f"output changes another attempt, the daemon or a terminal ({kind})"
        yield Trick("output", f"output-{kind}", says, deeds_run.printed, (kind,))
    for kind in ("link", "folder", "fifo", "huge", "up", "names", "itself"):
        says = f"an artifact leads elsewhere ({kind})"
        yield Trick("artifacts", f"artifact-{kind}", says, deeds_run.artifact, (kind,))


def processes() -> Iterator[Trick]:
    for way in WAYS:
        says = f"a process outlives its attempt ({way})"
        name = slug("stays", way)
        yield Trick("processes", name, says, deeds_processes.left_behind, (way,))
    crowd = "sixty processes outlive their attempt"
    yield Trick("processes", "stays-crowd", crowd, deeds_processes.crowd, (60,))
    again = "a process comes back when it is killed"
    yield Trick("processes", "stays-respawning", again, deeds_processes.respawning)


FOLDERS = [*run_folders(), *output()]
PROCESSES = [*processes()]
