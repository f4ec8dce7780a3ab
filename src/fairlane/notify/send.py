"""Send one event to one target, once: a command with JSON on its input, or a signed webhook."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from fairlane.model.instant import SECOND, Instant
from fairlane.notify.webhook import NUMBER, SIGNATURE, TIMESTAMP, post, shown, signature
from fairlane.settings import NotifyRule

SECONDS_MAX = 10.0
#: Answers that another try may change; so may every 5xx.
_LATER = (408, 425, 429)


class Sent(NamedTuple):
    """What came of one try; no `problem`: it was taken."""

    problem: str = ""
    again: bool = False  # whether another try may succeed


def send(
    rule: NotifyRule, document: Mapping[str, object], now: Instant, seconds: float = SECONDS_MAX
) -> Sent:
    """Try once, for this long at most; problems never show a secret."""
    body = json.dumps(document, ensure_ascii=True, sort_keys=True).encode()
    if rule.command is not None:
        return _command(rule.command, body, seconds)
    assert rule.url is not None
    timestamp = str(now // SECOND)
    headers = {
        "Content-Type": "application/json",
        NUMBER: str(document.get("number", "")),
        TIMESTAMP: timestamp,
    }
    if rule.secret:
        headers[SIGNATURE] = signature(rule.secret, timestamp, body)
    try:
        return _judge(post(rule.url, body, headers, seconds))
    except OSError as error:
        return Sent(error.strerror or str(error) or type(error).__name__, again=True)


def target_name(rule: NotifyRule) -> str:
    """How messages name a target: its program, or where it is, without what is secret."""
    return rule.command[0] if rule.command else shown(rule.url or "")


def _command(argv: tuple[str, ...], body: bytes, seconds: float) -> Sent:
    null = subprocess.DEVNULL
    try:
        done = subprocess.run(
            argv, input=body, stdout=null, stderr=null, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return Sent(f"it did not end within {seconds:.3g} s")
    except OSError as error:
        return Sent(error.strerror or str(error))
    return Sent(f"exit {done.returncode}" if done.returncode else "")


def _judge(status: int) -> Sent:
    if 200 <= status < 300:
        return Sent()
    if 300 <= status < 400:
        return Sent(f"it answered {status}, and redirects are not followed")
    return Sent(f"it answered {status}", again=status >= 500 or status in _LATER)
