"""One operation, one function: command line, HTTP and MCP give the same JSON.

Three home folders stand at the same instant and are led through the same walk: one by the command
line, one over HTTP, one over MCP (where agents may not call an operation, by the command line).
Every answer must be the same, and so must everything that is kept in the end.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
import tomlkit

from fairlane.client.remote import Remote
from fairlane.model.errors import FairlaneError
from fairlane.service.home.setup import home_token
from fairlane.service.operations.call import function_of
from fairlane.service.operations.table import OPERATIONS
from tests.acceptance.queue_home import START, Home
from tests.afar.served import over_http, serving, stdio

pytest.importorskip("mcp")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.slow


class Step(NamedTuple):
    """One question: an operation, how the command line asks it, and its arguments."""

    operation: str
    words: tuple[str, ...]
    arguments: dict[str, Any]
    code: int = 0  # the exit code of the command line


def step(operation: str, words: str, /, code: int = 0, **arguments: Any) -> Step:
    """The words are split at spaces."""
    return Step(operation, tuple(words.split()), arguments, code)


TASKS = [
    {"id": "a", "prompt": "Fix"},
    {"id": "b", "needs": ["a"], "kind": "review"},
    {"id": "c", "group": "release", "agent": "codex"},
    {"id": "d", "project": "web", "agent": "gemini"},
]
WORKLOAD = {
    "title": "an hour of tests",
    "work": {"default": {"duration": "20m", "tokens": 1000}},
    "source": [{"every": "1m", "most": 60}],
}
WALK = (
    step("project_add", "project add web --weight 3", name="web", values={"weight": 3}),
    step("project_set", "project set web --weight 2", name="web", values={"weight": 2}),
    step("project_show", "project show web", name="web"),
    step("project_show", "project show webb", 1, name="webb"),
    step("group_add", "group add release --priority 7", name="release", priority=7),
    step("group_set", "group set release --priority none", name="release",
         values={"priority": None}),
    step("add", "add --file tasks.jsonl", tasks=TASKS),
    step("add", "add --file tasks.jsonl", tasks=TASKS),
    step("add", "add --id b/", 2, tasks=[{"id": "b/"}]),
    step("list", "list --status queued", status=["queued"]),
    step("list", "list --held-by nothing", 2, held_by="nothing"),
    step("show", "show b", task="b"),
    step("show", "show nobody", 1, task="nobody"),
    step("why", "why b", task="b"),
    step("why", "why nobody", 1, task="nobody"),
    step("edit", "edit c d --priority 500 --title What", ids=["c", "d"],
         changes={"priority": 500, "title": "What"}),
    step("edit", "edit c --group none", ids=["c"], changes={"group": None}),
    step("pause", "pause kind:review --reason away", scope="kind:review", reason="away"),
    step("plan", "plan"),
    step("status", "status"),
    step("lease", "lease --limit 2 --worker box --label gpu", limit=2, worker="box",
         labels=["gpu"]),
    step("heartbeat", "heartbeat L1", lease="L1"),
    step("report", "report L1 --tokens 12 --cost 0.25 --note half", lease="L1",
         tokens={"output": 12}, cost=0.25, note="half"),
    step("logs", "logs a --raw", task="a", stream="stdout"),
    step("transcript", "logs a", task="a"),
    step("transcript", "logs b", 1, task="b"),
    step("check_log", "logs a --check make --raw", 1, task="a", name="make"),
    step("diff", "diff a --stat", 1, task="a", stat=True),
    step("diff", "diff nobody", 1, task="nobody"),
    step("complete", "complete L1 --tokens input=9,output=20", lease="L1",
         tokens={"input": 9, "output": 20}),
    step("complete", "complete L9", 1, lease="L9"),
    step("release", "release L2 --outcome throttled --retry-after 90", lease="L2",
         outcome="throttled", retry_after=90),
    step("retry", "retry a", 1, ids=["a"]),
    step("check", "check a", 1, task="a"),
    step("lease", "lease --limit 1 --worker box", limit=1, worker="box"),
    step("release", "release L3 --failed --reason boo", lease="L3", outcome="failed",
         reason="boo"),
    step("resume", "resume kind:review", scope="kind:review"),
    step("policy_set", "policy set caps.all=3", changes={"caps.all": 3}),
    step("policy_set", "policy set caps.all=many", 2, changes={"caps.all": "many"}),
    step("policy_show", "policy show"),
    step("reclaim", "reclaim"),
    step("decisions", "replay --list", limit=50),
    step("decision", "replay 1 --show", number=1),
    step("replay", "replay 1", number=1),
    step("replay", "replay 99", 1, number=99),
    step("simulate", "simulate workload.toml --seed 3", workload=WORKLOAD, seed=3),
    step("simulate", "simulate workload.toml --policy balancd", 2, workload=WORKLOAD,
         policies=["balancd"]),
    step("events", "events --after 2", cursor=2, limit=1000),
    step("events", "events --kind added", kind="added", limit=1000),
    step("summary", "summary --since 2h", since="2h"),
    step("stats", "stats --since 2h", since="2h"),
    step("project_list", "project list"),
    step("group_list", "group list"),
    step("group_show", "group show release", name="release"),
    step("pool_list", "pool list"),
    step("pool_show", "pool show anthropic", name="anthropic"),
    step("worker_list", "worker list"),
    step("worker_show", "worker show box", name="box"),
    step("cancel", "cancel b --reason no", ids=["b"], reason="no"),
    step("clear", "clear project:web --dry-run", scope="project:web", dry_run=True),
    step("clear", "clear --yes", scope="all"),
    step("project_remove", "project remove web", name="web"),
)  # fmt: skip


class World(NamedTuple):
    """A home folder; its path is taken out of what is compared."""

    home: Home

    def told(self, document: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = _without(document, str(self.home.folder))
        return found

    def by_words(self, step: Step, file: Path) -> dict[str, Any]:
        files = {name: str(file.with_name(name)) for name in ("tasks.jsonl", "workload.toml")}
        words = [files.get(word, word) for word in step.words]
        said = self.home.run("--json", *words)
        assert said.code == step.code, (step, said)
        document = said.document
        if "transcript" in document:  # all pages of it; here there is one
            document["entries"] = document.pop("transcript")
        return self.told(document)

    def by_url(self, step: Step, remote: Remote) -> dict[str, Any]:
        code = 0
        try:
            document = remote.ask(step.operation, **step.arguments)
        except FairlaneError as error:
            document, code = error.document(), error.exit_code
        assert code == step.code, document
        return self.told(document)

    async def by_tool(self, step: Step, client: Any) -> dict[str, Any]:
        result = await client.call_tool(OPERATIONS[step.operation].tool_name, step.arguments)
        assert result.is_error == (step.code != 0), (step, result)
        return self.told(result.structured_content)


def _without(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: _without(each, path) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(each, path) for each in value]
    return value.replace(path, "HOME") if isinstance(value, str) else value


@pytest.fixture
def worlds(tmp_path, home, capsys):
    """Three home folders at one instant, each with what an attempt printed."""
    found = [World(Home(tmp_path / name, capsys)) for name in ("words", "url", "tools")]
    for world in found:
        world.home.ask("status")
        log = world.home.folder / "runs" / "a" / "1" / "stdout.log"
        log.parent.mkdir(parents=True)
        log.write_text("first line\nthe letter ü\n")
    return found


def test_the_walk_meets_every_operation():
    assert {each.operation for each in WALK} == set(OPERATIONS)
    for operation in OPERATIONS.values():
        assert callable(function_of(operation.name))


def test_every_interface_gives_the_same_document(worlds, tmp_path, capsys):
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(f"{each}\n".replace("'", '"') for each in TASKS))
    file.with_name("workload.toml").write_text(tomlkit.dumps(WORKLOAD))
    words, there, tools = worlds
    equal: dict[str, str] = {}

    async def walk(url: str) -> None:
        token = home_token(there.home.folder)
        at = ("--home", str(tools.home.folder), "--now", START)
        with closing(Remote(url, token)) as remote:
            async with stdio("mcp", *at) as client, over_http(url, token) as hyper:
                await each_step(remote, client, hyper)

    async def each_step(remote: Remote, client: Any, hyper: Any) -> None:
        for each in WALK:
            expected = words.by_words(each, file)
            assert there.by_url(each, remote) == expected
            marks = ["HTTP"]
            operation = OPERATIONS[each.operation]
            if operation.tool:
                assert await tools.by_tool(each, client) == expected
                marks.append("MCP")
            else:
                assert tools.by_words(each, file) == expected
            if operation.tool and operation.reads:
                assert await there.by_tool(each, hyper) == expected
                marks.append("MCP over HTTP")
            equal[operation.name] = ", ".join(marks)

    with serving(there.home.folder, "--now", START) as url:
        anyio.run(walk, url)
    with capsys.disabled():
        print("\n" + drawn(equal))
    assert words.home.facts() == there.home.facts() == tools.home.facts()


def drawn(equal: dict[str, str]) -> str:
    """The operations, how each is asked, and where the answer was that of the command line."""
    lines = [f"{'operation':15} {'command line':32} {'HTTP':36} the same over"]
    for operation in OPERATIONS.values():
        verb = next(" ".join(each.words) for each in WALK if each.operation == operation.name)
        route = f"{operation.method} {operation.path}"
        lines.append(f"{operation.name:15} {verb[:30]:32} {route:36} {equal[operation.name]}")
    return "\n".join(lines)
