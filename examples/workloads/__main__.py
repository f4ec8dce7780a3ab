"""Makes the pages and pictures beside the workloads: `python -m examples.workloads [NAME]...`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from examples.workloads.findings import FINDINGS
from fairlane.policy.policy import Policy
from fairlane.simulation import report, words
from fairlane.simulation.plot import svg
from fairlane.simulation.simulate import orders_of, run_all
from fairlane.simulation.words import COLUMNS, Column
from fairlane.simulation.worlds.workload import read_workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlane.model.documents.simulation import SimulateAnswer

HERE = Path(__file__).parent
#: A page has room for more than a terminal.
MORE = (
    Column("last end", lambda row: words.length(row["took"])),
    Column("throttled", lambda row: f"{row['attempts'].get('throttled', 0):,}"),
    Column("parked", lambda row: f"{row['statuses'].get('parked', 0):,}"),
    Column("refused", lambda row: f"{row['refused']:,}"),
)
_LEGEND = (
    "`wait` is from ready to the first start. `busy` is the part of the slots that ran attempts; "
    "there are as many slots as the workers have and cap `all` allows. "
    "`held by` is what kept ready tasks waiting for longest. `last end` is the end of the last "
    "attempt, `throttled` counts attempts, `parked` tasks that need a person, and `refused` tasks "
    "that never came in because the queue was full."
)


def main(names: Sequence[str]) -> int:
    """Write the pages of these workloads, by default of all, and the list of them."""
    unknown = sorted(set(names) - set(FINDINGS))
    if unknown:
        print(f"No workload {unknown[0]!r}. Known: {', '.join(FINDINGS)}.", file=sys.stderr)
        return 2
    for name in names or FINDINGS:
        for file, text in made(name).items():
            (HERE / file).write_text(text, encoding="utf-8")
        print(f"{name}: {name}.md, {name}.svg")
    return 0


def made(name: str) -> dict[str, str]:
    """The files of one workload: its page and its picture."""
    policies = sorted(Policy.presets())
    path = HERE / f"{name}.toml"
    orders = orders_of(
        lambda: Policy.preset("balanced"), read_workload(path), policies, name=path.name
    )
    runs = run_all(orders)
    answer = report.answer(orders[0].title, runs)
    return {f"{name}.md": page(name, answer), f"{name}.svg": svg(answer, runs)}


def page(name: str, answer: SimulateAnswer) -> str:
    """What is simulated, what it shows, and the figures."""
    title = answer["workload"]
    policies = " ".join(f"--policy {row['name']}" for row in answer["policies"])
    parts = [
        f"# {title}",
        story((HERE / f"{name}.toml").read_text(encoding="utf-8")),
        (
            f"![{title}: tasks waiting and running, and shares of tokens, a panel for each preset]"
            f"({name}.svg)"
        ),
        "## What it shows",
        *paragraphs(FINDINGS[name](answer)),
        "## Figures",
        f"[{name}.toml]({name}.toml) under the six presets: {words.head(answer)}.",
        markdown(*words.table(answer["policies"], (*COLUMNS, *MORE))),
        _LEGEND,
    ]
    heads, rows = words.by_project(answer)
    if rows:
        parts += [
            "How long nine of ten tasks of each project wait at most:",
            markdown(heads[:-1], [row[:-1] for row in rows]),
        ]
    command = f"fairlane simulate {name}.toml {policies}"
    parts += [
        f"```sh\n{command}\n```",
        f"`python -m examples.workloads {name}` makes this page and its picture.",
    ]
    return "\n\n".join(parts) + "\n"


def story(text: str) -> str:
    """The comment at the head of a workload file, as one paragraph."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        lines.append(line.removeprefix("# "))
    return " ".join(lines)


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, each in one line."""
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; all but the first column are numbers."""
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
