"""The ground of an attack: a home, a user, repositories; and what must not have changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from fairlane.cli.main import run
from fairlane.model.project import Project
from fairlane.service.home.setup import home_token
from tests.attackers.tricks.trick import Trick, batches, program
from tests.daemon.world import World, is_zombie
from tests.workspaces.yard import git, make_repository

#: What a task's status is when nothing more happens to it by itself.
ENDED = ("done", "parked", "canceled")
SECONDS = 200.0
HEAD = "ref: refs/heads/main\n"
PYTHON = str(Path(sys.executable).resolve())


class Ground:
    """One home with a real daemon, and everything around it that an agent must not change."""

    def __init__(self, root: Path, tricks: list[Trick], settings: str, slots: int = 6) -> None:
        self.root, self.tricks, self.batches = root, tricks, batches(tricks)
        self.world = World(root / "home")
        self.world.home.chmod(0o700)
        self.world.policy(f"retry.max_attempts = 1\ncaps.all = {slots}\n")
        self.world.settings(f"[worker]\nslots = {slots}\n{settings}")
        self.stay = False  # whether agents stay until they are let go
        self.user, self.witnesses = root / "user", root / "witnesses"
        for folder in (
            "user/documents",
            "user/.ssh",
            "victims",
            "nowhere",
            "programs",
            "witnesses",
        ):
            (root / folder).mkdir(parents=True)
        self._user()
        self.other = make_repository(root / "other")
        (self.other / "README").write_text("half done\n")
        (self.other / "new").write_text("not added\n")
        self._programs()
        self._projects()
        self._secrets()

    def _user(self) -> None:
        (self.user / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
        (self.user / "documents" / "precious").write_text("x")
        (self.user / ".ssh" / "id_ed25519").write_text(f"{self.canary('ssh')}\n")

    def canary(self, what: str) -> str:
        """A word that stands in one secret place alone."""
        return f"canary-{what}-{hashlib.sha256(f'{self.root}{what}'.encode()).hexdigest()[:12]}"

    def _secrets(self) -> None:
        """What the home itself must keep: a token, a prompt in the store, the work of another."""
        self.token = home_token(self.world.home)
        kept = {"id": "kept", "prompt": self.canary("store"), "command": ["true"]}
        self.world.add(kept | {"not_before": "2099-01-01T00:00:00Z"})
        work = self.world.home / "work" / "kept"
        work.mkdir(parents=True)
        (work / "notes").write_text(f"{self.canary('work')}\n")

    def _programs(self) -> None:
        """For each trick a program that leaves a witness, unless an agent itself runs it."""
        witness = f'echo "$0 $*" >> "{self.witnesses}/${{0##*/}}"'
        text = f'#!/bin/sh\n[ -n "$FAIRLANE_RUN" ] || {witness}\ncat\n'
        hostile = self.root / "hostile"
        hostile.write_text(text)
        hostile.chmod(0o755)
        for trick in self.tricks:
            (self.root / "programs" / trick.name).symlink_to(hostile)
            (self.root / "victims" / trick.name).write_text("mine\n")

    def _projects(self) -> None:
        """A repository of its own for every attempt with git, and one for the innocent."""
        template = make_repository(self.root / "template")
        git(template, "branch", "precious")
        self.repos = {
            name: self.root / "repos" / name
            for name in ("innocent", *(name for name, each in self.batches.items() if each[0].repo))
        }
        (self.root / "repos").mkdir()
        for folder in self.repos.values():
            shutil.copytree(template, folder, symlinks=True)
        with self.world.context() as context, context.store.write() as tx:
            for name, folder in self.repos.items():
                tx.put(Project(name, repo=str(folder)))

    def told(self, name: str) -> dict[str, str]:
        """What an agent knows of the machine."""
        return {
            "home": str(self.world.home), "repo": str(self.repos.get(name, self.other)),
            "other": str(self.other), "user": str(self.user), "root": str(self.root),
            "python": sys.executable, "daemon": str(self.daemon), "tester": str(os.getpid()),
            "wait": str(self.world.marks / f"{name}.go") if self.stay else "",
            **{each: str(self.root / each) for each in ("programs", "victims", "nowhere")},
        }  # fmt: skip

    def task(self, name: str) -> dict[str, Any]:
        """The task of one batch."""
        tricks = self.batches[name]
        script = program(tricks, self.told(name))
        record: dict[str, Any] = {"id": name, "command": [PYTHON, "-I", "-c", script]}
        if tricks[0].repo:
            record |= {"project": name, "merge": "merge"}
        return record

    def innocent(self, name: str, project: str) -> dict[str, Any]:
        """A task that does what it should; its prompt and its work are nobody else's business.

        Its command line holds no secret: the kernel shows it to everybody.
        """
        script = f'echo "$WORK" > {name}; echo {name}'
        about = {"id": name, "project": project, "prompt": self.canary("store")}
        secret = {"WORK": self.canary("work")}
        return about | {"merge": "merge", "command": ["sh", "-c", script], "env": secret}

    def settled(self, names: Iterable[str]) -> dict[str, str]:
        """Wait until these have ended; their statuses."""
        left = set(names)
        ended: dict[str, str] = {}
        end = monotonic() + SECONDS
        while left := left - ended.keys():
            assert monotonic() < end, f"the daemon hangs on {sorted(left)}"
            sleep(0.1)
            now = self.world.statuses()
            ended |= {name: now[name] for name in left if now[name] in ENDED}
        return ended

    def attack(self) -> None:
        """Everything that is tried, then everything that a daemon and a person do afterwards.

        All the while a program of the user's runs that was given a word on its command line.
        """
        line = f"read nothing; : {self.canary('line')}"
        with subprocess.Popen(["sh", "-c", line], stdin=subprocess.PIPE):
            self.begin()
            self.end()

    def begin(self) -> None:
        """A daemon, somebody innocent, and everything that is tried."""
        server = ("--port", "0", "--no-page") if self.asks else ("--no-server",)
        self.daemon = int(self.world.fairlane("up", "--detach", *server)["pid"])
        self.world.add(self.innocent("first", "innocent"), *map(self.task, self.batches))

    def end(self) -> None:
        """What a daemon and a person do when it has been tried."""
        names = ["first", *self.batches]
        ended = self.settled(names)
        self.world.add(*(self.innocent(f"{name}-after", name) for name in self.repos))
        if parked := [name for name, status in ended.items() if status == "parked"]:
            self.world.fairlane("retry", *parked)
        self.statuses = self.settled([*names, *(f"{name}-after" for name in self.repos)])
        for words in ("workspaces", "workspaces clean", "doctor"):
            self.world.fairlane(*words.split())

    @property
    def asks(self) -> bool:
        """Whether agents ask Fairlane for something."""
        return any(trick.deed.__module__.endswith("deeds_asking") for trick in self.tricks)

    # What must not have changed.

    def harm(self, before: dict[str, str]) -> dict[str, str]:
        """Tricks that succeeded, or things that changed, and what happened."""
        found = dict.fromkeys(self.witnessed(), "its program ran")
        found |= dict.fromkeys(self.survivors(), "its process is still there")
        found |= self._as_noted()
        now = self.digest()
        for path in sorted({*before, *now}):
            if before.get(path) != now.get(path):
                name = path.split("/")[1] if path.startswith(("victims/", "nowhere/")) else path
                found[name] = f"{path} was {before.get(path)} and is {now.get(path)}"
        for name in self.repos.keys() - self.vandals:
            if wrong := wrong_with(self.repos[name]):
                found[name] = wrong
        return found | self._harm_to_the_daemon()

    def _as_noted(self) -> dict[str, str]:
        """Tricks that their agents say were not refused, or say nothing of."""
        notes, found = self.notes(), {}
        for trick in self.tricks:
            if trick.name not in notes:
                found[trick.name] = "it was not tried"
            elif trick.refused and notes[trick.name] == "done":
                found[trick.name] = "it was not refused"
        return found

    def _harm_to_the_daemon(self) -> dict[str, str]:
        found = {}
        if is_zombie(self.daemon):
            found["daemon"] = (
                f"it has ended: {(self.world.home / 'daemon.log').read_text()[-2000:]}"
            )
        if not self.world.sound():
            found["store"] = "it is damaged"
        said = {command: self.text(command) for command in ("list", "status", "events", "summary")}
        for command, text in {
            **said,
            "list --json": self.text("list", "--json"),
            **self.children(),
        }.items():
            if strange := {each for each in text if not (each.isprintable() or each == "\n")}:
                found[command] = f"what people see has {strange}"
        for name in ("first", "innocent-after"):
            if self.statuses[name] != "done":
                found[name] = f"{self.statuses[name]}: {self.world.attempts(name)[-1].detail}"
        return found

    def text(self, *words: str) -> str:
        """What a person or a program sees of a command."""
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            code = run(["--home", str(self.world.home), *words])
        assert code == 0, err.getvalue()
        return out.getvalue() + err.getvalue()

    def children(self) -> dict[str, str]:
        """The tasks that agents added, and how they are shown."""
        names = [name for name in self.world.statuses() if name.endswith("-child")]
        return {name: self.text("show", name) + self.text("show", name, "--json") for name in names}

    @property
    def vandals(self) -> set[str]:
        """Attempts that change their own repository with their own hands: they are the user."""
        names = ("git_file", "git_folder", "branch_at", "missing_objects", "stolen_commit")
        return {trick.attempt for trick in self.tricks if trick.deed.__name__ in names}

    def digest(self) -> dict[str, str]:
        """Everything of the user's, except the repositories that the attacked projects own."""
        kept = ["user", "victims", "nowhere", "other", "template", "hostile"]
        kept += ["home/policy.toml", "home/fairlane.toml", "home/token", "home/work/kept"]
        return {path: about for name in kept for path, about in digest(self.root / name).items()}

    def witnessed(self) -> list[str]:
        """Tricks whose program ran outside an attempt."""
        return sorted(path.name for path in self.witnesses.iterdir())

    def survivors(self) -> list[str]:
        """Tricks whose processes are still there."""
        mark = os.fsencode(f"{self.root}/survivor/")
        found = set()
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and not is_zombie(int(folder.name)):
                with suppress(OSError):
                    line = (folder / "cmdline").read_bytes()
                    if mark in line:
                        found.add(line.rpartition(mark)[2].strip(b"\0").decode())
        return sorted(found)

    def leaked(self) -> dict[str, str]:
        """Secrets that stand in what hostile agents printed or left, and where."""
        names = ("ssh", "store", "work", "environment", "line")
        secrets = {self.canary(what).encode(): what for what in names}
        secrets[self.token.encode()] = "token"
        found: dict[str, str] = {}
        for name in self.batches:
            for place in ("runs", "artifacts", "work"):
                for path in (self.world.home / place / name).rglob("*"):
                    if path.is_file() and not path.is_symlink():
                        with path.open("rb") as file:  # some are endless
                            text = file.read(64 << 20)
                        found |= {secrets[each]: str(path) for each in secrets if each in text}
        return found

    def strays(self) -> dict[str, str]:
        """What agents left in the home outside of their own folders; in a sandbox they cannot."""
        tasks, found = self.world.statuses(), {}
        for place in ("runs", "artifacts", "work"):
            for path in (self.world.home / place).iterdir():
                if path.name not in tasks or path.is_symlink():
                    found[f"{place}/{path.name}"] = "it is no task's"
        for path in (self.world.home / "runs").glob("*/*/*"):
            if path.is_symlink() or not (path.is_file() or path.is_socket()):
                found[str(path.relative_to(self.world.home))] = "it is no file"
        return found

    def notes(self) -> dict[str, str]:
        """What became of each trick, as its agent says."""
        found: dict[str, str] = {}
        for path in self.world.home.glob("artifacts/*/notes.json"):
            found |= dict(json.loads(path.read_text()))
        return found


def wrong_with(repo: Path) -> str:
    """What was changed in a repository beside the branches of tasks and what was merged."""
    for name, text in (("README", "one\n"), ("src/code", "code\n"), (".git/HEAD", HEAD)):
        if (repo / name).read_text() != text:
            return f"{repo / name} is {(repo / name).read_text()!r}"
    refs = git(repo, "-c", "core.hooksPath=/dev/null", "for-each-ref", "--format=%(refname)")
    ours = ("refs/heads/fairlane/", "refs/fairlane/")
    strange = {ref for ref in refs.splitlines() if not ref.startswith(ours)}
    if strange != {"refs/heads/main", "refs/heads/precious"}:
        return f"its references are {sorted(strange)}"
    if git(repo, "merge-base", "precious", "main") != git(
        repo, "rev-list", "--max-parents=0", "main"
    ):
        return "its branches do not begin where they did"
    return ""


def digest(top: Path) -> dict[str, str]:
    """Every path below a folder: its kind, its mode, its content."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = Path(folder) / name
            about = path.lstat()
            text = ""
            if stat.S_ISLNK(about.st_mode):
                text = str(path.readlink())
            elif stat.S_ISREG(about.st_mode):
                text = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(top.parent))] = f"{about.st_mode:o} {text}"
    if top.is_file():
        found[top.name] = hashlib.sha256(top.read_bytes()).hexdigest()
    return found
