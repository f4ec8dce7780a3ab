"""From what a program's final record says to an outcome: one place for all programs.

Only the error field of a final record is matched, never what the agent wrote.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fairlane.agents.contract import Verdict
from fairlane.agents.records import last_line, one_line
from fairlane.agents.waits import reset_in, wait_in
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from fairlane.model.instant import Instant

NOT_LOGGED_IN = "not logged in"
OUT_OF_CREDITS = "out of credits"

#: How much of an error is looked at: its beginning says what it is.
_ERROR_MAX = 2_000
_LOGGED_OUT = re.compile(
    r"^(?:failed to authenticate|not logged in|invalid api key|please run /login)"
    r"|last status: 401\b|unexpected status 401\b|\boauth token (?:has )?(?:expired|revoked)"
    r"|^your (?:access )?token (?:could not be refreshed|has expired)|\bplease log (?:out|in)\b",
    re.IGNORECASE,
)
_NO_CREDITS = re.compile(
    r"\bout of credits\b|\bcredit balance is too low\b|\bspend cap\b|\bcredits_required\b"
    r"|\binsufficient_quota\b|\bquota exceeded\. check your plan\b|\binsufficient.{0,20}balance\b",
    re.IGNORECASE,
)
_WINDOW = re.compile(
    r"you.ve (?:hit|reached) your\b.{0,60}\blimit|\busage limit (?:reached|exceeded)\b"
    r"|^(?:session|weekly|spend) limit reached\b|\bexhausted your (?:daily )?quota\b",
    re.IGNORECASE,
)
_THROTTLE = re.compile(
    r"\b(?:last|unexpected) status:? (?:429|529)\b|\b(?:429|529)\b.{0,40}"
    r"\b(?:too many|rate|overloaded|rejected|resource)|rejected \((?:429|529)\)"
    r"|\brate limit reached\b|\brepeated 529\b|\btemporarily limiting requests\b"
    r"|\bselected model is at capacity\b|\bserver is overloaded\b|\bRESOURCE_EXHAUSTED\b",
    re.IGNORECASE,
)


def by_exit(exit_code: int | None, signal: int | None, **said: Any) -> Verdict:
    """The verdict where no record says more: exit 0 is success."""
    if exit_code == 0 and not signal:
        return Verdict(Outcome.SUCCEEDED, **said)
    return Verdict(Outcome.FAILED, ended(exit_code, signal), **said)


def unfinished(
    exit_code: int | None, signal: int | None, stderr_tail: str, begun: bool, **said: Any
) -> Verdict:
    """The verdict on a program that should have printed a final record and did not.

    One that began and stopped short was interrupted, whatever its exit code says. One that
    printed no record and gave up by itself never started: a wrong option, a broken installation.
    """
    if not begun and exit_code == 0 and not signal:
        return Verdict(Outcome.SUCCEEDED, **said)
    why = last_line(stderr_tail)
    if begun and exit_code == 0 and not signal:
        why = why or "it ended without a final record"
    detail = one_line(": ".join(part for part in (ended(exit_code, signal), why) if part))
    never = not begun and not signal and exit_code is not None
    return Verdict(Outcome.LAUNCH_FAILED if never else Outcome.FAILED, detail, **said)


def by_error(error: str, now: Instant, **said: Any) -> Verdict:
    """The verdict on a final record with an error, by the text of that error."""
    text, detail = error[:_ERROR_MAX].replace("’", "'"), one_line(error) or "it failed"
    if _LOGGED_OUT.search(text):
        return Verdict(Outcome.ENVIRONMENT, detail, pause=NOT_LOGGED_IN, **said)
    if _NO_CREDITS.search(text):
        return Verdict(Outcome.ENVIRONMENT, detail, pause=OUT_OF_CREDITS, **said)
    if _WINDOW.search(text):
        resets_at, wait = reset_in(text, now), wait_in(text)
        if resets_at is None and wait is not None:
            resets_at = now + wait
        return Verdict(Outcome.THROTTLED, detail, resets_at=resets_at, **said)
    if _THROTTLE.search(text):
        return Verdict(Outcome.THROTTLED, detail, retry_after=wait_in(text), **said)
    return Verdict(Outcome.FAILED, detail, **said)


def ended(exit_code: int | None, signal: int | None) -> str:
    """How a process ended, in two words."""
    if signal:
        return f"signal {signal}"
    return "no exit code" if exit_code is None else f"exit {exit_code}"
