"""Starting a real agent as an executor does: from its Launch, into its Parser."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.agents.contract import Agent, OutputLine, Verdict, shipped
from fairlane.agents.parsers import parser_for
from fairlane.clock import SystemClock
from fairlane.model.task import Task
from tests.launching import Launch, launch_of
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.model.project import Tokens
    from tests.agents.model_api import ModelApi

#: How long an attempt may take beside others on a busy machine.
RUN_SECONDS = 300.0


@dataclass
class Runner:
    """One agent, its home folder, and the model API that it is to ask."""

    name: str
    api: ModelApi
    programs: Path
    home: Path
    permissions: str = "edit"
    env: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)  # printed so far
    seen: list[OutputLine] = field(default_factory=list)
    stderr: str = ""

    def agent(self) -> Agent:
        agent = shipped()[self.name]
        changed = replace(agent, permissions=self.permissions)
        return replace(changed, model="m1") if self.name == "codex" else changed

    def launch(self, prompt: str, session: str | None) -> Launch:
        launch = launch_of(self.agent(), Task("t1"), prompt, session)
        if self.name != "codex":
            return launch
        provider = f'name="fake",base_url="{self.api.url}/v1",env_key="FAKE_KEY"'
        provider += ',wire_api="responses",request_max_retries=1,stream_max_retries=0'
        options = ("-c", "model_provider=fake", "-c", f"model_providers.fake={{{provider}}}")
        return replace(launch, argv=(*launch.argv[:2], *options, *launch.argv[2:]))

    def environment(self, launch: Launch) -> dict[str, str]:
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "1"}
        keys = {"ANTHROPIC_API_KEY": "none", "FAKE_KEY": "none"}
        whole = {"PATH": path, "HOME": str(self.home), "ANTHROPIC_BASE_URL": self.api.url}
        whole["TMPDIR"] = temporary_beside(self.home)
        return whole | dict(launch.env) | quiet | keys | self.env

    def run(
        self,
        folder: Path,
        prompt: str = "Say hello",
        session: str | None = None,
        baseline: Tokens | None = None,
        meanwhile: Callable[[subprocess.Popen[str], Launch], None] | None = None,
    ) -> Verdict:
        """The verdict on one attempt."""
        launch = self.launch(prompt, session)
        parser = parser_for(self.agent(), baseline)
        self.lines, self.seen = [], []
        with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
            process = subprocess.Popen(
                launch.argv, env=self.environment(launch), cwd=folder, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
            threads = [threading.Thread(target=self._listen, args=(process, launch))]
            if meanwhile is not None:
                threads.append(threading.Thread(target=meanwhile, args=(process, launch)))
            for thread in threads:
                thread.start()
            try:
                process.wait(RUN_SECONDS)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                for thread in threads:
                    thread.join()
            errors.seek(0)
            self.stderr = errors.read()
        for line in self.lines:
            self.seen += parser.line(line)
        code = process.returncode
        exited, killed = (None, -code) if code < 0 else (code, None)
        return parser.verdict(exited, killed, self.stderr, SystemClock().now())

    def _listen(self, process: subprocess.Popen[str], launch: Launch) -> None:
        """Give it its input, and take every line as it comes."""
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(launch.stdin or "")
        with process.stdout:
            for line in process.stdout:
                self.lines.append(line.rstrip("\n"))


def temporary_beside(home: Path) -> str:
    """A folder for temporary files, beside a home folder.

    In a home below the folder for temporary files codex makes no program for its sandbox, and where
    bubblewrap is installed its commands then fail.
    """
    folder = home.parent / "temporary"
    folder.mkdir(exist_ok=True)
    return str(folder)


def gives_namespaces() -> bool:
    """Whether this kernel or container gives a sandbox what it needs."""
    words = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def stop(process: subprocess.Popen[str], launch: Launch) -> None:
    """Interrupt, wait, terminate, wait, kill: the whole group."""
    steps = (signal.SIGINT, launch.stop[0]), (signal.SIGTERM, launch.stop[1]), (signal.SIGKILL, 5.0)
    for number, wait in steps:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        ends = time.monotonic() + wait
        while process.poll() is None and time.monotonic() < ends:
            time.sleep(0.05)
        if process.returncode is not None:
            return


def left_over(*texts: str) -> list[str]:
    """What still runs when a program has had time to end what it started."""
    with contextlib.suppress(AssertionError):
        until(lambda: not processes_with(*texts))
    return processes_with(*texts)


def processes_with(*texts: str) -> list[str]:
    """The living processes whose command line or environment holds one of the texts."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            told = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        passed = state == "Z" or folder.name == str(os.getpid())
        if not passed and any(text.encode() in told for text in texts):
            found.append(told.replace(b"\0", b" ").decode("utf-8", "replace")[:200])
    return found
