"""Tricks by asking: commands inside an attempt, and requests with the token of an attempt."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.attackers.tricks.scene import Scene


def fairlane(at: Scene, words: list[str], text: str = "") -> None:
    """One command; a refusal raises."""
    line = [at.told["python"], "-m", "fairlane", *words]
    done = subprocess.run(
        line, input=text, capture_output=True, text=True, check=False, timeout=100
    )
    if done.returncode:
        raise PermissionError(done.stderr.strip()[-300:])


def command(at: Scene, *words: str) -> None:
    """A command of Fairlane that decides for people, or for others."""
    fields = {"lease": at.lease, "nowhere": str(at.nowhere), **at.told}
    fairlane(at, [word.format(**fields) for word in words])


def child(at: Scene, field: str, value: str) -> None:
    """A child with text that would harm whoever shows it."""
    late = {"not_before": "2099-01-01T00:00:00Z"}  # it is to be shown, not to run
    record = json.dumps({"id": f"{at.name}-child", "prompt": "x", field: value} | late)
    fairlane(at, ["add", "--file", "-"], record)


def ask(at: Scene, token: str, method: str, path: str, body: object) -> dict[str, Any]:
    """One request; a refusal raises."""
    url = json.loads((at.home / "server.json").read_text())["url"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/api/v1{path}", data, headers, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found
    except urllib.error.HTTPError as error:
        raise PermissionError(f"{error.code} {error.read()[:200]!r}") from error


def own_token(at: Scene) -> str:
    """The token of this attempt, as its owner would give it to an agent elsewhere."""
    owner = (at.home / "token").read_text().strip()
    return str(ask(at, owner, "POST", f"/leases/{at.lease}/token", {})["token"])


def request(at: Scene, method: str, path: str, body: str = "") -> None:
    """A request with the token of this attempt that reaches beyond it."""
    text = body.replace("NOWHERE", str(at.nowhere))
    ask(at, own_token(at), method, path, json.loads(text) if text else None)


def forged(at: Scene, how: str) -> None:
    """A token that nobody gave."""
    tokens = {
        "empty": "", "lease": at.lease, "dot": f"{at.lease}.", "other": "L1.AAAA",
        "none": "null", "long": "x" * 5000, "cut": own_token(at)[:-1],
    }  # fmt: skip
    ask(at, tokens[how], "GET", f"/tasks/{at.task}", None)
