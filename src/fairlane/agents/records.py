"""Reading what programs print: JSON lines of any quality, numbers, texts of any length."""

from __future__ import annotations

import json
import re
from typing import TypeGuard

from fairlane.model.amounts import ANSWER_BYTES, DOLLARS_MAX, LINE_MAX, TOKENS_MAX
from fairlane.model.instant import SECOND, Micros
from fairlane.model.project import Tokens

DETAIL_MAX = 300
SUMMARY_MAX = 4_000
#: Longest wait that is read, in seconds.
_SECONDS_MAX = 10**9

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def parse_record(line: str) -> dict[str, object] | None:
    """The JSON object of a line; None: it is none, or too long to be one that matters."""
    text = line.strip("\ufeff \t\r\n\0")
    if not text.startswith("{") or len(text) > LINE_MAX:
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def table(value: object, *keys: str) -> dict[str, object]:
    """The object at the end of a path of keys; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    """A text, or nothing."""
    return value if isinstance(value, str) else ""


def count(value: object, most: int = TOKENS_MAX) -> int:
    """A whole number that can be counted, else 0: more than `most` is a mistake of the program."""
    return int(value) if _is_within(value, most) else 0


def micro_dollars(value: object) -> int | None:
    """Dollars as micro-dollars; None: not said."""
    return round(value * 1_000_000) if _is_within(value, DOLLARS_MAX) else None


def micros(seconds: object) -> Micros | None:
    """Seconds as microseconds; None: not said."""
    return round(seconds * SECOND) if _is_within(seconds, _SECONDS_MAX) else None


def _is_within(value: object, most: int) -> TypeGuard[float]:
    """Whether this is a number from 0 to the most that can be meant."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def session_id(value: object) -> str | None:
    """A session's id, if it looks like one: a command line will contain it."""
    return value if isinstance(value, str) and _SESSION.fullmatch(value) else None


def one_line(value: object, most: int = DETAIL_MAX) -> str:
    """A text as one clean line."""
    shown = value if _is_plain(value, most) else words(value, 4 * most)
    flat = " ".join(shown.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def _is_plain(value: object, most: int) -> TypeGuard[str]:
    """Whether a text is short and can be shown as it is: most lines are, and they are many."""
    return isinstance(value, str) and len(value) <= most and value.isascii() and value.isprintable()


def words(value: object, most: int = SUMMARY_MAX) -> str:
    """A text that can be shown: no control signs, nothing beyond its length."""
    shown = _CONTROLS.sub("", _ESCAPES.sub("", text(value)[: 4 * most]))
    shown = shown.encode("utf-8", "replace").decode("utf-8").strip()
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def whole_text(value: object) -> str:
    """A message as it was written, without control signs; only its length is bounded."""
    shown = words(value, ANSWER_BYTES)
    if len(shown) * 4 <= ANSWER_BYTES:
        return shown
    data = shown.encode()
    whole = data[: ANSWER_BYTES - 3].decode("utf-8", "ignore") + "…"
    return shown if len(data) <= ANSWER_BYTES else whole


def is_cut(answer: str) -> bool:
    """Whether this is the beginning of a longer text."""
    return answer.endswith("…") and len(answer.encode("utf-8", "replace")) > ANSWER_BYTES - 4


def last_line(tail: str) -> str:
    """The last line of standard error that says something."""
    for line in reversed(tail[-64_000:].splitlines()):
        shown = one_line(line)
        if shown:
            return shown
    return ""


def plus(one: Tokens, other: Tokens) -> Tokens:
    """The sum, counter by counter."""
    return Tokens(*(a + b for a, b in zip(one, other, strict=True)))
