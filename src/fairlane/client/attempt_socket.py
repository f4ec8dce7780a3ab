"""AttemptSocket: inside an attempt, its own operations over the socket that its runner opened."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Any

from fairlane.client.requests import as_json
from fairlane.model.errors import FairlaneError, Invalid, Refused, TryLater

#: Its answer comes after the calls that wait before it.
ANSWER_SECONDS = 600.0
_RAISED: dict[int, type[FairlaneError]] = {2: Invalid, 75: TryLater}


class AttemptSocket:
    """`ask(name, **arguments)` gives the same document as a home folder does."""

    def __init__(self, path: str) -> None:
        self.path = path

    def ask(self, name: str, /, **arguments: object) -> Any:
        """The operation's answer to this attempt; raises the errors of the other side."""
        given = {key: value for key, value in arguments.items() if value is not None}
        call = as_json({"operation": name, "arguments": given})
        try:
            answer = json.loads(self._exchange(call + b"\n"))
            code, document = answer["exit_code"], answer["document"]
        except OSError as error:
            hint = "The socket lives as long as the attempt."
            raise TryLater(
                f"{self.path}: {error.strerror or error}", hint, "unreachable"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            hint = "Check whether it was done."
            raise TryLater(f"{self.path}: no whole answer", hint, "no_answer") from error
        if code == 0:
            return document
        error_ = document["error"]
        raise _RAISED.get(code, Refused)(error_["message"], error_["hint"], error_["code"])

    def _exchange(self, call: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(self.path)
            with suppress(BrokenPipeError):  # it has been refused already: the answer says why
                connection.sendall(call)
            parts = []
            while part := connection.recv(1 << 16):
                parts.append(part)
            return b"".join(parts)
