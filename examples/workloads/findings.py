"""What each workload shows, in sentences whose figures come from the simulation.

A finding that the figures do not bear out any more is an error: then the sentence must change.
Paragraphs are apart by an empty line; other line breaks mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlane.simulation.words import length, percent

if TYPE_CHECKING:
    from fairlane.model.documents.simulation import PolicyFlowDocument, SimulateAnswer

ONE_AT_A_TIME = ("fail-closed", "serial-lanes")


class Disproved(Exception):
    """The figures say something else than the sentence."""


class Rows:
    """The rows of an answer, by policy."""

    def __init__(self, answer: SimulateAnswer) -> None:
        self.by_name = {row["name"]: row for row in answer["policies"]}

    def __getitem__(self, name: str) -> PolicyFlowDocument:
        return self.by_name[name]

    def all_of(self, names: Sequence[str]) -> list[PolicyFlowDocument]:
        """The rows of some."""
        return [self.by_name[name] for name in names]

    def but(self, *names: str) -> list[PolicyFlowDocument]:
        """The rows of all others."""
        return [row for name, row in self.by_name.items() if name not in names]


def wait_of(row: PolicyFlowDocument, project: str) -> float:
    """The wait of nine of ten tasks of a project."""
    waits = {each["project"]: each["waits"]["p90"] for each in row["by_project"]}
    return waits[project] or 0.0


def p90(row: PolicyFlowDocument) -> float:
    """The wait of nine of ten tasks."""
    return row["waits"]["p90"] or 0.0


def median(row: PolicyFlowDocument) -> float:
    """The wait of half of the tasks."""
    return row["waits"]["p50"] or 0.0


def parked(row: PolicyFlowDocument) -> int:
    """Tasks that wait for a person."""
    return row["statuses"].get("parked", 0)


def throttled(row: PolicyFlowDocument) -> int:
    """Attempts that a provider refused."""
    return row["attempts"].get("throttled", 0)


def holds(*conditions: bool) -> None:
    """What a sentence rests on."""
    if not all(conditions):
        raise Disproved("the figures say something else: look at them, and change the sentence")


def overnight(answer: SimulateAnswer) -> str:
    """Whether it is done by the morning."""
    rows, morning = Rows(answer), 13 * 3600
    wide, narrow = rows.but(*ONE_AT_A_TIME), rows.all_of(ONE_AT_A_TIME)
    quick = min(wide, key=lambda row: row["took"])
    holds(
        all(row["took"] < morning for row in wide),
        all(row["took"] > morning for row in narrow),
        all(throttled(row) for row in wide),
        not any(throttled(row) for row in narrow),
    )
    return f"""
        **{quick["name"]}** has built everything after {length(quick["took"])}, long before the
        developer is back at eight. One at a time, as fail-closed and serial-lanes run, it takes
        {length(narrow[0]["took"])}: the night is too short.

        Every preset that runs several at once uses up the window of the plan and waits until it
        resets. It is still done hours earlier: a limit of the account is no reason to run less
        at once.
    """


def team(answer: SimulateAnswer) -> str:
    """Caps are for the size of the team."""
    rows = Rows(answer)
    deep, balanced, fair = (rows[name] for name in ("depth-first", "balanced", "fair-share"))
    narrow = rows.all_of(ONE_AT_A_TIME)
    holds(
        p90(deep) < p90(fair) < p90(balanced),
        throttled(deep) > throttled(fair),
        all(row["done"] < balanced["done"] / 2 for row in narrow),
    )
    return f"""
        Twelve people need more than four slots: under balanced nine of ten tasks wait up to
        {length(p90(balanced))}, while two thirds of the server are idle. **depth-first** and
        **fair-share** use the slots that are there ({length(p90(deep))} and {length(p90(fair))}).
        If you like the order of balanced, keep it and raise `caps.all` to the number of slots.

        Using everything at once meets the limits of the accounts more often: depth-first is
        throttled {throttled(deep)} times, fair-share {throttled(fair)} times. The accounts cool
        down, and no work is lost. One at a time less than half of the work is done by the end of
        the week.
    """


def outage(answer: SimulateAnswer) -> str:
    """What refuses is waited for; what does not start is parked."""
    rows = Rows(answer)
    most = max(rows.by_name.values(), key=parked)
    least = min(rows.but(*ONE_AT_A_TIME), key=parked)
    refused = max(map(throttled, rows.by_name.values()))
    balanced = rows["balanced"]
    holds(
        parked(most) > parked(least) > 0,
        wait_of(balanced, "api") < wait_of(balanced, "web") / 2,
        refused < 40,
    )
    return f"""
        Two hours of refusals cost little under every preset: at most {refused} attempts, because
        an account that refuses cools down and is then tried with one probe. The tasks of the
        other account go on: under balanced nine of ten tasks of api wait up to
        {length(wait_of(balanced, "api"))}, of web {length(wait_of(balanced, "web"))}.

        The expired login is worse, although it is shorter: launches that fail park a task after a
        few tries, {parked(most)} of them under {most["name"]} and {parked(least)} under
        {least["name"]}. They wait for a person: `fairlane retry` after the login.
    """


def flood(answer: SimulateAnswer) -> str:
    """Shares let the long tasks start at once."""
    rows = Rows(answer)
    balanced, deep = rows["balanced"], rows["depth-first"]
    others = rows.but("balanced", "fair-share")
    worst = max(others, key=lambda row: wait_of(row, "release"))
    holds(
        wait_of(balanced, "release") < 3600,
        all(wait_of(row, "release") > 4 * 3600 for row in others),
        balanced["took"] < deep["took"],
        median(deep) < median(balanced),
    )
    return f"""
        Under **balanced** the release waits {length(wait_of(balanced, "release"))}, because its
        project has used less than its share. Where age decides, it waits until the flood is over:
        {length(wait_of(deep, "release"))} under depth-first,
        {length(wait_of(worst, "release"))} under {worst["name"]}.

        Starting the long tasks early pays: balanced is done with everything after
        {length(balanced["took"])} with four slots, depth-first after {length(deep["took"])} with
        six, because its long tasks run last and alone. The small tasks pay for it: half of them
        wait {length(median(balanced))} or more, under depth-first {length(median(deep))}.
    """


def week(answer: SimulateAnswer) -> str:
    """Two slots at night carry what comes in by day."""
    rows = Rows(answer)
    balanced, fair, narrow = (rows[name] for name in ("balanced", "fair-share", "fail-closed"))
    holds(
        wait_of(balanced, "app") < wait_of(fair, "app") / 4,
        (fair["utilisation"] or 0) < 0.5,
        wait_of(narrow, "app") > 12 * 3600,
    )
    return f"""
        Laptops that leave for lunch and in the evening do no harm: under **balanced** nine of ten
        tasks of app wait up to {length(wait_of(balanced, "app"))}. The nightly reports wait
        {length(wait_of(balanced, "reports"))}, since only the server is there at night, and
        nobody waits for them before nine.

        fair-share lets no project run more than two at once. With one busy project that leaves
        slots idle ({percent(fair["utilisation"])} busy) while app waits
        {length(wait_of(fair, "app"))}: raise its cap `project:*`. One at a time app waits
        {length(wait_of(narrow, "app"))}.
    """


FINDINGS: Mapping[str, Callable[[SimulateAnswer], str]] = {
    "overnight": overnight,
    "team": team,
    "outage": outage,
    "flood": flood,
    "week": week,
}
