"""Lines as Claude Code prints them, for transcripts that a test can read."""

from __future__ import annotations

import json
from collections.abc import Iterable


def begun(session: str = "0b7c8a51-demo") -> str:
    record = {"type": "system", "subtype": "init", "session_id": session, "model": "claude-demo"}
    return json.dumps(record) + "\n"


def said(text: str) -> str:
    return _line("assistant", [{"type": "text", "text": text}])


def tool(name: str, **arguments: str) -> str:
    return _line("assistant", [{"type": "tool_use", "id": "u", "name": name, "input": arguments}])


def result(text: str) -> str:
    return _line("user", [{"type": "tool_result", "tool_use_id": "u", "content": text}])


def ended(text: str, tokens: int = 900) -> str:
    usage = {"input_tokens": tokens - 200, "cache_creation_input_tokens": 200}
    usage |= {"cache_read_input_tokens": 3000, "output_tokens": 100}
    record = {"type": "result", "subtype": "success", "is_error": False, "result": text}
    return json.dumps({**record, "usage": usage, "session_id": "0b7c8a51-demo"}) + "\n"


def many(numbers: Iterable[int]) -> str:
    return "".join(said(f"word number {number}") for number in numbers)


def _line(kind: str, content: list[dict[str, object]]) -> str:
    return json.dumps({"type": kind, "message": {"role": kind, "content": content}}) + "\n"
