"""A model API on loopback: answers as providers do, from a script, so that real agents can run."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: What every answer is said to have cost; the tests expect these numbers back.
INPUT, OUTPUT, CACHE_READ, CACHE_WRITE = 1000, 50, 300, 200


@dataclass(frozen=True)
class Answer:
    """One turn of the model: a text, a use of a tool, or an error."""

    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    error: str = ""
    hang: bool = False


def say(text: str) -> Answer:
    return Answer(text=text)


def use(tool: str, **arguments: Any) -> Answer:
    return Answer(tool=tool, arguments=arguments)


def refuse(status: int, error: str = "rate_limit_error", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, error=error, headers=named)


HANG = Answer(hang=True)


class ModelApi:
    """Plays its script, one answer a request; the last one is repeated."""

    def __init__(self, *script: Answer) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.closing = threading.Event()
        self.asked = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ModelApi:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        return type("OwnHandler", (Handler,), {"api": self})

    def next_answer(self, request: dict[str, Any]) -> tuple[int, Answer]:
        with self._lock:
            at = min(len(self.requests), len(self.script) - 1)
            self.requests.append(request)
            self.asked.set()
            return len(self.requests), self.script[at]


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    api: ModelApi

    def log_message(self, *_: object) -> None: ...

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # agents that are stopped just go
            super().handle()

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.reply(200, b"{}")

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self.reply(200, b'{"input_tokens": 10}')
        elif path in STREAMS:
            self.play(path, body)
        else:
            self.reply(404, b"{}")

    def play(self, path: str, body: dict[str, Any]) -> None:
        number, answer = self.api.next_answer(body)
        if answer.hang:
            self.close_connection = True
            self.api.closing.wait(120)
        elif answer.status != 200:
            error = {"type": answer.error, "message": f"{answer.error} from the script"}
            document = json.dumps({"type": "error", "error": error}).encode()
            self.reply(answer.status, document, answer.headers)
        else:
            events = STREAMS[path](answer, number, str(body.get("model")))
            text = "".join(
                f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events
            )
            self.reply(200, text.encode(), {"content-type": "text/event-stream"})

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        whole = {"content-type": "application/json", **(headers or {})}
        for name, value in whole.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def messages(answer: Answer, number: int, model: str) -> Iterator[dict[str, Any]]:
    """The events of one answer of Anthropic's messages API."""
    usage = {
        "input_tokens": INPUT,
        "cache_creation_input_tokens": CACHE_WRITE,
        "cache_read_input_tokens": CACHE_READ,
        "output_tokens": 1,
    }
    message: dict[str, Any] = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
    message |= {"model": model, "content": [], "usage": usage}
    message |= {"stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": message}
    if answer.tool:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": answer.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": answer.text}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "tool_use" if answer.tool else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": OUTPUT}}
    yield {"type": "message_stop"}


def responses(answer: Answer, number: int, model: str) -> Iterator[dict[str, Any]]:
    """The events of one answer of OpenAI's responses API."""
    response = {"id": f"resp_{number}", "object": "response", "model": model, "output": []}
    yield {"type": "response.created", "response": response}
    if answer.tool:
        item: dict[str, Any] = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
        }
        space, _, name = answer.tool.rpartition("/")  # tools of an MCP server have a namespace
        item |= {"name": name, "arguments": json.dumps(answer.arguments)}
        item |= {"namespace": space} if space else {}
    else:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        item = {"type": "message", "id": f"item_{number}", "role": "assistant"}
        item |= {"content": content}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {
        "input_tokens": INPUT + CACHE_READ,
        "input_tokens_details": {"cached_tokens": CACHE_READ},
        "output_tokens": OUTPUT,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT + CACHE_READ + OUTPUT,
    }
    yield {"type": "response.completed", "response": response | {"usage": usage}}


STREAMS = {"/v1/messages": messages, "/v1/responses": responses}
