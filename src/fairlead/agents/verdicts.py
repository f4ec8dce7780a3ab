"""From an error that a program's final record names to an outcome: one place for all programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.agents.contract import Verdict
from fairlead.agents.records import last_line, one_line
from fairlead.model.task import Outcome

if TYPE_CHECKING:
    from typing import Any

NOT_LOGGED_IN = "not logged in"
OUT_OF_CREDITS = "out of credits"


def by_exit(exit_code: int | None, signal: int | None, **said: Any) -> Verdict:
    """The verdict where no final record says more: exit 0 is success."""
    if exit_code == 0 and not signal:
        return Verdict(Outcome.SUCCEEDED, **said)
    return Verdict(Outcome.FAILED, ended(exit_code, signal), **said)


def unfinished(
    exit_code: int | None, signal: int | None, stderr_tail: str, begun: bool, **said: Any
) -> Verdict:
    """The verdict on a program that should have printed a final record and did not.

    One that printed no record at all and gave up by itself was never started: a wrong option, a
    broken installation.
    """
    verdict = by_exit(exit_code, signal, **said)
    if verdict.outcome is Outcome.SUCCEEDED:
        return verdict
    why = last_line(stderr_tail)
    detail = one_line(f"{verdict.detail}: {why}" if why else verdict.detail)
    launched = begun or signal is not None or exit_code is None
    outcome = Outcome.FAILED if launched else Outcome.LAUNCH_FAILED
    return Verdict(outcome, detail, **said)


def ended(exit_code: int | None, signal: int | None) -> str:
    """How a process ended, in two words."""
    if signal:
        return f"signal {signal}"
    return "no exit code" if exit_code is None else f"exit {exit_code}"
