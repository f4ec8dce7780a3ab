"""What a person writes who follows the pages of `docs/adding`, one addition a page."""

from __future__ import annotations

from typing import NamedTuple


class Addition(NamedTuple):
    """New files, and texts of files that exist, each with what takes its place."""

    page: str
    name: str
    new: dict[str, str]
    edits: dict[str, list[tuple[str, str]]]

    @property
    def files(self) -> set[str]:
        return {*self.new, *self.edits}


def before(place: str, text: str) -> tuple[str, str]:
    """Put a text in front of another one."""
    return place, text + place


def after(place: str, text: str) -> tuple[str, str]:
    """Put a text behind another one."""
    return place, place + text


_ROW = 'Operation("oldest", "service.oldest:oldest", "GET", "/oldest", gives="Oldest", reads=True),'
OPERATION = Addition(
    "an-operation",
    "oldest",
    {
        "src/fairlane/service/oldest.py": '''\
"""The oldest queued task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.engine.context import Context
from fairlane.model.names import SCHEMA
from fairlane.model.task import Status
from fairlane.store.base import Filter

if TYPE_CHECKING:
    from fairlane.model.documents.tasks import OldestAnswer


def oldest(context: Context) -> OldestAnswer:
    """The task that has been queued for longest."""
    with context.store.read() as reading:
        rows = reading.listing(Filter(status=(Status.QUEUED,)), limit=1)
    return {"schema": SCHEMA, "task": rows[0].task.id if rows else None}
''',
        "src/fairlane/cli/look/oldest.py": '''\
"""`fairlane oldest`: the task that has been queued for longest."""

from __future__ import annotations

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import safe


@click.command("oldest")
@takes_call
def command(call: Call) -> None:
    """The task that has been queued for longest.

    \\b
    Example:
      fairlane oldest
    """
    document = call.ask("oldest")
    call.show(document, lambda: safe(document["task"] or "none"))
''',
    },
    {
        "src/fairlane/model/documents/tasks.py": [
            before("class LogAnswer(", "class OldestAnswer(Answer):\n    task: str | None\n\n\n"),
        ],
        "src/fairlane/service/operations/table.py": [
            before('    Operation("status", ', f"    {_ROW}\n"),
        ],
        "src/fairlane/cli/main.py": [
            before(
                '        "status": ',
                f'{" " * 8}"oldest": ("look.oldest", "The task that waits for longest."),\n',
            ),
        ],
        "tests/acceptance/test_one_operation.py": [
            after('    step("status", "status"),\n', '    step("oldest", "oldest"),\n'),
        ],
    },
)

_DRAWN = """\
    if draw.one_in(4):
        keys["capacity.focus"] = draw.pick(["code", "review"])
"""
_ORACLE = """\
    def focus(self, task: Task) -> Iterator[Fact]:
        if self.policy.capacity.focus not in (None, task.kind):
            yield Fact("focus", "focus")

"""
GATE = Addition(
    "a-gate",
    "focus",
    {
        "src/fairlane/planner/gates/focus.py": '''\
"""While the policy names a kind to focus on, every other kind waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlane.model.plan import Hold
from fairlane.planner.rules import LaneRules

if TYPE_CHECKING:
    from fairlane.planner.round import Round

CODES: tuple[str, ...] = ("focus",)


def concerns(lane: LaneRules, round: Round) -> bool:
    """Whether another kind than its own has the focus."""
    return round.policy.capacity.focus not in (None, lane.kind)


def check(lane: LaneRules, round: Round) -> Iterator[Hold]:
    """Held as long as the policy says so."""
    yield Hold("focus", "focus", f"only {round.policy.capacity.focus} tasks start")
''',
        "tests/unit/planner/test_focus.py": '''\
"""Gate `focus`: while the policy names a kind, every other kind waits."""

from __future__ import annotations

from tests.unit.planner.scene import code, picks, policy, queued

TASKS = [queued("a", kind="code"), queued("b", kind="review")]


def test_another_kind_is_held():
    assert code("a", TASKS, policy(capacity__focus="review")) == ("focus", "focus")


def test_without_a_focus_all_start():
    assert picks(TASKS) == ["a", "b"]
''',
    },
    {
        "src/fairlane/planner/gates/__init__.py": [
            before("locks, paused", "focus, "),
            before("cooldown, budget", "focus, "),
        ],
        "src/fairlane/policy/policy.py": [
            before("    spawn_delay: Micros", "    focus: str | None  # only this kind starts\n"),
        ],
        "src/fairlane/policy/schema.py": [
            before(
                '    "capacity.spawn_delay":', '    "capacity.focus": choice("code", "review"),\n'
            ),
            before('        "caps.all",\n', '        "capacity.focus",\n'),
        ],
        "docs/policies.md": [
            before(
                "| `capacity.spawn_delay` |", "| `capacity.focus` | `none` | only this kind |\n"
            ),
        ],
        "tests/properties/strategies.py": [
            before('    if "batch" in draw.on:', _DRAWN),
        ],
        "tests/properties/oracle.py": [
            before("            *self.cooldown(task),", "            *self.focus(task),\n"),
            before("    def cooldown(self, task: Task)", _ORACLE),
        ],
    },
)

SOURCE = Addition(
    "a-source",
    "titles",
    {
        "src/fairlane/intake/sources/titles.py": '''\
"""`titles`: a file with an id and a title a line; a line with `x` in front is closed."""

from __future__ import annotations

from fairlane.intake.files import read_text
from fairlane.intake.sources.base import Found, Item, LeftOut, Standing, Where
from fairlane.model.errors import Invalid

WHAT = "a file with an id and a title a line"


def read(where: Where) -> Found:
    """Every line that has an id and a title; another one is named."""
    if where.path is None:
        raise Invalid("there is nothing to read", f"Give {WHAT}.", code="unreadable")
    items: list[Item] = []
    left_out: list[LeftOut] = []
    for number, line in enumerate(read_text(where.path, WHAT).splitlines(), start=1):
        place = f"{where.path.name}:{number}"
        id, _, title = line.removeprefix("x ").partition(" ")
        if not title:
            left_out.append(LeftOut(place, "no title", place, bad=True))
            continue
        over = line.startswith("x ")
        standing = Standing.CLOSED if over else Standing.OPEN
        items.append(Item(id, {"title": title}, standing, where=place))
    return Found(tuple(items), left_out=tuple(left_out))
''',
        "tests/conformance/samples/titles.py": '''\
"""A file with an id and a title a line."""

from __future__ import annotations

from pathlib import Path

from fairlane.intake.sources.base import Where
from fairlane.testing.source_suite import Sample


def make(folder: Path) -> Sample:
    """Three open lines, one closed."""
    file = folder / "titles.txt"
    rows = {"a": "a First", "b": "b Second", "c": "c Third", "d": "x d Over"}

    def write(**changes: str) -> None:
        rows.update(changes)
        file.write_text("".join(f"{row}\\n" for row in rows.values()), encoding="utf-8")

    def spoil() -> str:
        write(bad="alone")
        return "titles.txt:5"

    write()
    return Sample(
        Where(file),
        ("a", "b", "c"),
        lambda item, title: write(**{item: f"{item} {title}"}),
        lambda item: write(**{item: f"x {rows[item]}"}),
        spoil,
    )
''',
    },
    {
        "docs/sources.md": [
            before("| `queue.json` |", "| `titles` | a file | an id and a title a line | |\n"),
        ],
        "src/fairlane/cli/bring.py": [before("queue.json, cards,", "titles, ")],
    },
)

_ENTRY = """\
[quote]
parser = "quote"
argv = ["quote"]
stdin = true
stop = [10.0, 5.0]

"""
AGENT = Addition(
    "an-agent",
    "quote",
    {
        "src/fairlane/agents/parsers/quote.py": '''\
"""A program that prints one answer: its last line is the summary."""

from __future__ import annotations

from fairlane.agents.parsers.plain import PlainParser


class QuoteParser(PlainParser):
    """Every line is text."""


READER = QuoteParser
''',
        "tests/unit/agents/test_quote.py": '''\
"""Parser `quote`: the last line is the summary."""

from __future__ import annotations

from fairlane.agents.parsers import parser_named


def test_the_last_line_is_the_summary():
    parser = parser_named("quote")()
    list(parser.line("first"))
    list(parser.line("last"))
    assert parser.verdict(0, None, "", 0).summary == "last"
''',
    },
    {
        "src/fairlane/agents/shipped.toml": [before("[shell]\n", _ENTRY)],
        "src/fairlane/agents/parsers/__init__.py": [after('"plain"', ', "quote"')],
        "src/fairlane/model/task.py": [before('"shell", "demo")', '"quote", ')],
        "docs/agents.md": [
            before("| `shell` | the task", "| `quote` | `quote` | none | `quote` | no |\n"),
        ],
    },
)

EXECUTOR = Addition(
    "an-executor",
    "nearby",
    {
        "src/fairlane/executors/nearby.py": '''\
"""Nearby: attempts as processes of this machine, under another name."""

from __future__ import annotations

from fairlane.executors.process import ProcessExecutor


class NearbyExecutor(ProcessExecutor):
    """Processes, as `process` starts them."""
''',
    },
    {
        "src/fairlane/executors/__init__.py": [
            before('"process": "ProcessExecutor"', '"nearby": "NearbyExecutor", '),
        ],
        "tests/conformance/test_executors.py": [
            before(
                "class TestProcess(", 'class TestNearby(ExecutorSuite):\n    name = "nearby"\n\n\n'
            ),
        ],
        "docs/operating.md": [after("`process` (the default),", " `nearby`,")],
    },
)

ADDITIONS = (OPERATION, GATE, SOURCE, AGENT, EXECUTOR)
