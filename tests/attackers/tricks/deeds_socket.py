"""Tricks by the attempt's own socket: the one way to Fairlane that a sandbox leaves open."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.attackers.tricks.scene import Scene


def exchanged(data: bytes) -> dict[str, Any]:
    """One call and its answer; a refusal raises."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(100)
        connection.connect(os.environ["FAIRLANE_SOCKET"])
        with contextlib.suppress(BrokenPipeError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    told: dict[str, Any] = json.loads(answer)
    if told["exit_code"]:
        raise PermissionError(json.dumps(told["document"])[:300])
    return told


def calls(at: Scene, operation: str, arguments: str) -> None:
    """An operation that is not the attempt's own."""
    text = arguments.replace("NOWHERE", str(at.nowhere)).replace("HOME", str(at.home))
    given = {"operation": operation, "arguments": json.loads(text)}
    exchanged(json.dumps(given).encode() + b"\n")


#: What is no call at all.
BABBLE = {
    "nothing": b"\n",
    "half": b'{"operation": "show"',
    "deep": b"[" * 100_000 + b"\n",
    "huge": b'{"operation": "' + b"x" * (2 << 20) + b'"}\n',
    "binary": bytes(range(256)) + b"\n",
    "list": b'["report"]\n',
    "number": b'{"operation": 1, "arguments": 2}\n',
    "more": b'{"operation": "show", "arguments": {}, "home": "/", "lease": "L1"}\n',
}


def babbles(at: Scene, kind: str) -> None:
    """Bytes that harm whoever reads them."""
    exchanged(BABBLE[kind])


def child_by_socket(at: Scene, field: str, value: str) -> None:
    """A child with text that would harm whoever shows it."""
    late = {"not_before": "2099-01-01T00:00:00Z"}  # it is to be shown, not to run
    record = {"id": f"{at.name}-child", "prompt": "x", field: value} | late
    given = {"operation": "add", "arguments": {"tasks": [record]}}
    exchanged(json.dumps(given).encode() + b"\n")


def replaces_socket(at: Scene, how: str) -> None:
    """Another program answers in the place of the socket, or keeps it from the attempt."""
    path = Path(os.environ["FAIRLANE_SOCKET"])
    if how == "removed":
        path.unlink()
    elif how == "moved":
        path.rename(path.with_name("moved"))
    elif how == "linked":
        path.with_name("linked").symlink_to(at.victim)
