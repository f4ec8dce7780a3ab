"""Short transcripts in the shape that each program prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlane.agents.contract import Verdict, shipped
from fairlane.agents.parsers import parser_for
from fairlane.agents.transcript import Entry, Place, Transcript
from fairlane.model.instant import Instant, parse_instant

if TYPE_CHECKING:
    from fairlane.agents.contract import OutputLine
    from fairlane.model.project import Tokens

NOW = parse_instant("2026-01-30T12:00:00Z")  # a Friday
SESSION = "89ab45e3-82b5-463f-9b8e-7ae89e1ce992"


def lines(*records: dict[str, Any]) -> list[str]:
    return [json.dumps(each) for each in records]


def read(
    agent: str,
    told: list[str],
    exit_code: int | None = 0,
    signal: int | None = None,
    stderr: str = "",
    now: Instant = NOW,
    baseline: Tokens | None = None,
) -> tuple[Verdict, list[OutputLine]]:
    """The verdict on a transcript, and everything that was seen."""
    parser = parser_for(shipped()[agent], baseline)
    seen = [each for line in told for each in parser.line(line)]
    return parser.verdict(exit_code, signal, stderr, now), seen


class Line(NamedTuple):
    """A line of a log, with its place."""

    start: int
    end: int
    text: str
    whole: bool = True


def placed(told: list[str], start: int = 0) -> list[Line]:
    """Lines as they stand in a log, from a byte on."""
    found, at = [], 0
    for line in told:
        end = at + len(line.encode("utf-8", "surrogatepass")) + 1
        found.append(Line(at, end, line))
        at = end
    return [line for line in found if line.start >= start]


def entries(agent: str, told: list[str], baseline: Tokens | None = None) -> list[Entry]:
    """The transcript of these lines, which nothing follows."""
    transcript = Transcript(parser_for(shipped()[agent], baseline), Place())
    given = [*transcript.read(placed(told)), *transcript.rest()]
    assert [each.number for each in given] == list(range(1, len(given) + 1))
    return [each.entry for each in given]


def brief(found: list[Entry]) -> list[tuple[str, ...]]:
    """Kind and words of each entry."""
    return [(each.kind, each.tool, each.argument) if each.tool else (each.kind, each.text)
            for each in found]  # fmt: skip


def init(**more: Any) -> dict[str, Any]:
    said = {"type": "system", "subtype": "init", "session_id": SESSION, "model": "claude-x"}
    return said | more


def answer(said: str = "Hello", name: str = "msg_1", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 1000, "cache_creation_input_tokens": 200}
    usage |= {"cache_read_input_tokens": 300, "output_tokens": 1}
    message: dict[str, Any] = {"id": name, "model": "claude-x", "usage": usage}
    message["content"] = [{"type": "text", "text": said}]
    return {"type": "assistant", "message": message, "parent_tool_use_id": None} | more


def result(said: str = "Hello", **more: Any) -> dict[str, Any]:
    whole = {"type": "result", "subtype": "success", "is_error": False, "api_error_status": None}
    whole |= {"result": said, "session_id": SESSION, "total_cost_usd": 0.00765}
    whole["usage"] = {"input_tokens": 9, "output_tokens": 9}
    model = {"inputTokens": 1000, "outputTokens": 50, "cacheReadInputTokens": 300}
    whole["modelUsage"] = {"claude-x": model | {"cacheCreationInputTokens": 200}}
    return whole | more


def refused(said: str, status: int | None = None, **more: Any) -> dict[str, Any]:
    """A result of a run that did nothing, as the provider did not let it."""
    nothing = {"is_error": True, "api_error_status": status, "total_cost_usd": 0}
    return result(said, **nothing, modelUsage={}, usage={}) | more


def window(status: str, resets_at: int | None = None, **more: Any) -> dict[str, Any]:
    info = {"status": status, "resetsAt": resets_at, "rateLimitType": "five_hour"}
    return {"type": "rate_limit_event", "rate_limit_info": info | more}


def turn(**usage: int) -> list[dict[str, Any]]:
    message = {"id": "item_1", "type": "agent_message", "text": "Done"}
    return [
        {"type": "thread.started", "thread_id": SESSION},
        {"type": "turn.started"},
        {"type": "item.completed", "item": message},
        {"type": "turn.completed", "usage": usage},
    ]


def failed_turn(message: str) -> list[str]:
    return lines(
        {"type": "thread.started", "thread_id": SESSION},
        {"type": "turn.started"},
        {"type": "error", "message": message},
        {"type": "turn.failed", "error": {"message": message}},
    )
