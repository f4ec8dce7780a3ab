"""`fairlane simulate`: what policies would make of a described workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import paint, safe, table, wrapped
from fairlane.model.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlane.model.documents.simulation import PolicyFlowDocument, SimulateAnswer


@click.command("simulate")
@click.argument("workload", metavar="WORKLOAD.toml", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="PRESET|FILE",
    help="Simulate under these rules (repeatable); default: the policy in force.",
)
@click.option(
    "--seed", default=1, type=click.IntRange(0, 2**53 - 1), help="Seed of all draws; default: 1."
)
@click.option("--days", type=click.IntRange(1, 3660), help="Stop after this many days.")
@click.option("--plot", metavar="FILE.svg|.png", help="Draw waits, slots and shares over time.")
@click.option("--trace-out", metavar="FILE", help="Write what happened as a trace (one policy).")
@takes_call
def simulate(
    call: Call,
    workload: Path,
    policies: tuple[str, ...],
    seed: int,
    days: int | None,
    plot: str | None,
    trace_out: str | None,
) -> None:
    """Run a described workload through the real scheduler in virtual time.

    Nothing starts and nothing changes. The same workload, policy and seed give the same answer
    on every machine, and a task has the same luck under every policy.

    \b
    Example:
      fairlane simulate week.toml
      fairlane simulate week.toml --policy balanced --policy fair-share --plot week.svg
    """
    from fairlane.simulation.worlds.workload import read_workload

    asked: dict[str, Any] = {
        "workload": read_workload(workload),
        "policies": _policies(policies) or None,
        "seed": seed,
        "days": days,
        "name": str(workload),
    }
    if plot is None and trace_out is None and call.elsewhere() is not None:
        document = call.ask("simulate", **asked)
    else:
        document = _simulated_here(call, asked, plot, trace_out)
    written = [
        f"{word}: {safe(file)}" for word, file in (("drawn", plot), ("trace", trace_out)) if file
    ]
    call.show(document, lambda: "\n\n".join([simulate_text(document), *written]))


def _policies(given: Sequence[str]) -> list[str | dict[str, object]]:
    """Each with a name of its own: files that would have the same one are named by their paths."""
    names = [Path(each).stem for each in given]
    return [
        _policy(each, name if names.count(name) == 1 else each)
        for each, name in zip(given, names, strict=True)
    ]


def _policy(what: str, name: str) -> str | dict[str, object]:
    """A preset by its name; the rules of a file as they are, so that a server can take them too."""
    from fairlane.policy.policy import Policy
    from fairlane.service.policies import named

    if what in Policy.presets():
        return what
    return {"name": name, "policy": named(what).document()}


def _simulated_here(
    call: Call, asked: dict[str, Any], plot: str | None, trace_out: str | None
) -> SimulateAnswer:
    from fairlane.cli.look.plot import check_target, draw
    from fairlane.policy.policy import Policy
    from fairlane.simulation import report
    from fairlane.simulation.plot import svg
    from fairlane.simulation.simulate import orders_of, run_all, trace_of

    if call.server is not None:
        hint = "A simulation needs no server: leave out --url and FAIRLANE_URL."
        raise Invalid("--plot and --trace-out: not over a URL", hint, code="usage")
    call.here()
    target = None if plot is None else check_target(Path(plot))
    for option, file in (("--plot", plot), ("--trace-out", trace_out)):
        if file is not None:
            _refuse_target(option, Path(file), [Path(asked["name"]), call.policy_file])
    orders = orders_of(lambda: Policy.load(call.policy_file), **asked)
    if trace_out is not None and len(orders) > 1:
        raise Invalid("--trace-out: a trace is of one policy", "Give --policy once.")
    runs = run_all(orders)
    document = report.answer(orders[0].title, runs)
    if target is not None:
        draw(svg(document, runs), target)
    if trace_out is not None:
        _write_trace(trace_of(orders[0], runs[0]), Path(trace_out))
    return document


def _refuse_target(option: str, target: Path, read: Iterable[Path]) -> None:
    """Before anything is simulated: a file that cannot be made, or that would be lost."""
    if target.is_dir() or not target.parent.is_dir():
        wrong = "it is a folder" if target.is_dir() else f"there is no folder {target.parent}"
        raise Invalid(f"{option}: {target}: {wrong}", "Choose another file.")
    if target.exists() and any(file.exists() and target.samefile(file) for file in read):
        raise Invalid(f"{option}: {target} is what is simulated", "Choose another file.")


def _write_trace(lines: Iterable[str], target: Path) -> None:
    try:
        with target.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        message = f"--trace-out: {target}: {error.strerror}"
        raise Invalid(message, "Choose another file.") from error


def simulate_text(document: SimulateAnswer) -> str:
    """A row a policy, then what differs; for one policy its projects and what held its tasks."""
    from fairlane.simulation import words

    policies = document["policies"]
    title = f"{paint(safe(document['workload']), 'bold')}: {words.head(document)}"
    parts = [title, _table(*words.table(policies))]
    if len(policies) > 1:
        rows = _table(*words.by_project(document))
        parts.append(f"{paint('Wait p90 by project:', 'bold')}\n{rows}" if rows else "")
        lines = [wrapped(safe(line), 4, "  ") for line in words.differences(document)]
        parts.append("\n".join([paint("What differs:", "bold"), *lines] if lines else []))
    else:
        parts += _alone(policies[0])
    return "\n\n".join(part for part in parts if part)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return table(heads, rows, right=range(1, len(heads) - 1)) if rows else ""


def _alone(row: PolicyFlowDocument) -> list[str]:
    from fairlane.simulation import words

    heads, cells = words.projects(row["by_project"])
    lines = [wrapped(safe(line), 0) for line in words.alone(row)]
    rows = f"{paint('Projects:', 'bold')}\n{_table(heads, cells)}" if cells else ""
    return [rows, "\n".join(lines)]
