"""Starting a real agent as an executor does: from its Launch, into its Parser."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.agents.adapter import Agent, Launch, Seen, Verdict, launch_of, parser_for
from fairlane.agents.catalog import shipped
from fairlane.clock import SystemClock
from fairlane.model.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.lifecycle.usage import Tokens
    from tests.agents.model_api import ModelApi

RUN_SECONDS = 90


@dataclass
class Runner:
    """One agent, its home folder, and the model API that it is to ask."""

    name: str
    api: ModelApi
    programs: Path
    home: Path
    permissions: str = "edit"
    env: dict[str, str] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
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
        self.seen = []
        process = subprocess.Popen(
            launch.argv,
            env=self.environment(launch),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        if meanwhile is not None:
            threading.Thread(target=meanwhile, args=(process, launch), daemon=True).start()
        try:
            told, self.stderr = process.communicate(launch.stdin, timeout=RUN_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for line in told.splitlines():
            self.seen += parser.line(line)
        code = process.returncode
        exited, killed = (None, -code) if code < 0 else (code, None)
        return parser.verdict(exited, killed, self.stderr, SystemClock().now())


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
    ends = time.monotonic() + 10
    while processes_with(*texts) and time.monotonic() < ends:
        time.sleep(0.1)
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
