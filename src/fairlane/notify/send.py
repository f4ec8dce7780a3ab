"""Send one event to one listener, with a timeout; webhooks are signed and retried."""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping

from fairlane.clock import SYSTEM
from fairlane.settings import NotifyRule

SECONDS_MAX = 10
TRIES = 3
_PAUSE_SECONDS = 0.5


def send(rule: NotifyRule, document: Mapping[str, object]) -> str:
    """Send one event; return what went wrong, or ""."""
    body = json.dumps(document, ensure_ascii=True, sort_keys=True).encode()
    if rule.command is not None:
        return _command(rule.command, body)
    return _webhook(rule, body, str(document.get("number", ""))) if rule.url else ""


def signature(secret: str, body: bytes) -> str:
    """What a listener compares: HMAC-SHA-256 of the body."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _command(argv: tuple[str, ...], body: bytes) -> str:
    try:
        done = subprocess.run(
            list(argv), input=body, capture_output=True, timeout=SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{argv[0]}: {error}"
    return "" if done.returncode == 0 else f"{argv[0]}: exit {done.returncode}"


def _webhook(rule: NotifyRule, body: bytes, number: str) -> str:
    assert rule.url is not None
    headers = {"Content-Type": "application/json", "X-Fairlane-Event": number}
    if rule.secret:
        headers["X-Fairlane-Signature"] = signature(rule.secret, body)
    problem = ""
    for turn in range(TRIES):
        if turn:
            SYSTEM.wait(_PAUSE_SECONDS * 2**turn)
        request = urllib.request.Request(rule.url, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_MAX):
                return ""
        except urllib.error.HTTPError as error:
            problem = f"{rule.url}: {error.code}"
            if error.code < 500 and error.code != 429:
                break
        except (OSError, ValueError) as error:
            problem = f"{rule.url}: {error}"
    return problem
