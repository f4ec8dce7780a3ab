"""What each program says in a transcript, and that no output breaks one."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.agents.contract import shipped
from fairlane.agents.parsers import parser_for
from fairlane.agents.transcript import (
    ARGUMENT_LETTERS,
    TEXT_BYTES,
    TOOL_LETTERS,
    Entry,
    Numbered,
    Place,
    Transcript,
    main_argument,
)
from fairlane.model.errors import Invalid
from fairlane.model.project import Tokens
from tests.unit.agents.test_parsers import AGENTS, LINES
from tests.unit.agents.transcripts import (
    SESSION,
    answer,
    brief,
    entries,
    init,
    lines,
    placed,
    read,
    refused,
    result,
    turn,
    window,
)

KINDS = {"said", "tool", "result", "turn", "error", "answer", "line"}


def uses(name: str, **arguments: Any) -> dict[str, Any]:
    """An answer of Claude that uses a tool."""
    block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}
    return {"type": "assistant", "message": {"id": "m", "content": [block]}}


def gave(content: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def test_claude():
    told = lines(
        init(),
        answer("I look first."),
        uses("Bash", description="Tests", command="make test"),
        gave("one\ntwo\n"),
        uses("Task", description="Search", prompt="Find the form", subagent_type="Explore"),
        gave([{"type": "text", "text": "found"}, {"type": "image", "source": {}}]),
        answer("Done.\n\n- all"),
        result("Done.\n\n- all"),
    )
    found = entries("claude", told)
    assert brief(found) == [
        ("turn", "started (claude-x)"),
        ("said", "I look first."),
        ("tool", "Bash", "make test"),
        ("result", "one\ntwo"),
        ("tool", "Task", "Find the form"),
        ("result", "found\n[image]"),
        ("said", "Done.\n\n- all"),
        ("turn", "ended"),
    ]
    assert found[-1].tokens == Tokens(1000, 50, 300, 200)
    assert read("claude", told)[0].answer == "Done.\n\n- all"


def test_claude_says_what_went_wrong_once():
    synthetic = answer("You\u2019ve hit your limit")
    synthetic["message"]["model"] = "<synthetic>"
    retry: dict[str, Any] = {"type": "system", "subtype": "api_retry", "error": "overloaded"}
    retry["retry_delay_ms"] = 1500
    told = lines(
        answer("Half"),
        retry,
        window("allowed"),
        window("rejected"),
        synthetic,
        refused("You\u2019ve"),
    )
    assert brief(entries("claude", told)) == [
        ("said", "Half"),
        ("error", "overloaded, again in 1.5 s"),
        ("error", "five_hour limit reached"),
        ("error", "You\u2019ve hit your limit"),
        ("turn", "failed"),
    ]
    assert read("claude", told, 1)[0].answer == "Half", "an error is no answer"
    turns = lines(result("", subtype="error_max_turns", is_error=True))
    assert brief(entries("claude", turns)) == [("error", "error_max_turns"), ("turn", "failed")]


def item(kind: str, type: str, **more: Any) -> dict[str, Any]:
    return {"type": f"item.{kind}", "item": {"id": "i", "type": type, **more}}


def test_codex():
    command = "/bin/bash -lc \"printf 'one\\\\ntwo'; exit 3\""
    ran = {"command": command, "aggregated_output": "one\ntwo\n", "exit_code": 3}
    mcp = {"server": "fairlane", "tool": "why", "arguments": {"task": "t1"}}
    steps = [{"text": "look", "completed": True}, {"text": "fix", "completed": False}]
    changes = [{"path": "a.py", "kind": "add"}, {"path": "b.py", "kind": "update"}]
    told = lines(
        {"type": "thread.started", "thread_id": SESSION},
        {"type": "turn.started"},
        item("started", "command_execution", command=command, aggregated_output=""),
        item("completed", "command_execution", **ran),
        item("started", "todo_list", items=steps),
        item("completed", "todo_list", items=steps),
        item("completed", "reasoning", text="hm"),
        item("started", "mcp_tool_call", **mcp),
        item("completed", "mcp_tool_call", **mcp, result={"content": [{"text": "it waits"}]}),
        item("completed", "file_change", changes=changes, status="completed"),
        item("completed", "web_search", query="how"),
        item("completed", "error", message="old model"),
        {"type": "error", "message": "stream closed"},
        *turn(input_tokens=400, cached_input_tokens=100, output_tokens=7)[2:],
    )
    found = entries("codex", told, baseline=Tokens(100, 2, 0, 0))
    assert brief(found) == [
        ("turn", "started"),
        ("tool", "shell", "printf 'one\\ntwo'; exit 3"),
        ("result", "one\ntwo\nexit 3"),
        ("tool", "todo_list", "1 of 2 done: fix"),
        ("tool", "fairlane.why", "t1"),
        ("result", "it waits"),
        ("tool", "file_change", "add a.py, update b.py"),
        ("tool", "web_search", "how"),
        ("error", "old model"),
        ("error", "stream closed"),
        ("said", "Done"),
        ("turn", "ended"),
    ]
    assert found[-1].tokens == Tokens(200, 5, 100, 0), (
        "what the session had used before is not told"
    )
    failing = lines({"type": "turn.failed", "error": {"message": "no"}})
    assert brief(entries("codex", failing)) == [("error", "no"), ("turn", "failed")]


def piece(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": words, "delta": True, **more}


def test_gemini_joins_the_pieces_of_a_message():
    use: dict[str, Any] = {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "r1"}
    use["parameters"] = {"description": "Lists", "command": "ls"}
    stats = {"total_tokens": 170, "input_tokens": 100, "output_tokens": 50, "cached": 30}
    told = lines(
        {"type": "init", "session_id": "s1", "model": "g"},
        {"type": "message", "role": "user", "content": "Look"},
        piece("I lo"),
        piece("ok."),
        use,
        {"type": "tool_result", "tool_id": "r1", "status": "success", "output": "a\nb"},
        {"type": "tool_result", "tool_id": "r2", "status": "error", "error": {"message": "no"}},
        piece("All "),
        piece("done."),
        {"type": "error", "severity": "warning", "message": "loop"},
        {"type": "result", "status": "success", "stats": stats},
    )
    found = entries("gemini", told)
    assert brief(found) == [
        ("turn", "started (g)"),
        ("said", "I look."),
        ("tool", "run_shell_command", "ls"),
        ("result", "a\nb"),
        ("result", "no"),
        ("said", "All done."),
        ("error", "loop"),
        ("turn", "ended"),
    ]
    assert found[-1].tokens == Tokens(70, 70, 30, 0)
    verdict, _ = read("gemini", told)
    assert (verdict.answer, verdict.summary) == ("All done.", "All done.")


def test_opencode():
    def part(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "timestamp": 1, "sessionID": "ses_1", "part": more}

    state = {"status": "completed", "input": {"filePath": "a.py"}, "output": "x = 1\n"}
    tokens = {"input": 10, "output": 5, "reasoning": 1, "cache": {"read": 3, "write": 2}}
    told = [
        "permission requested: edit",
        *lines(
            part("step_start"),
            part("text", text="I look."),
            part("tool_use", tool="read", state=state),
            part("step_finish", reason="tool-calls", tokens=tokens),
            part("text", text="Done."),
            part("step_finish", reason="stop", tokens=tokens),
            {"type": "error", "sessionID": "ses_1", "error": {"data": {"message": "late"}}},
        ),
    ]
    found = entries("opencode", told)
    assert brief(found) == [
        ("line", "permission requested: edit"),
        ("said", "I look."),
        ("tool", "read", "a.py"),
        ("result", "x = 1"),
        ("turn", "step"),
        ("said", "Done."),
        ("turn", "ended"),
        ("error", "late"),
    ]
    assert found[-2].tokens == Tokens(10, 6, 3, 2)
    assert read("opencode", told[:-1])[0].answer == "Done."


def test_records_of_a_script():
    tokens = {"input": 9, "output": 2, "cache_read": 0, "cache_write": 0}
    told = [
        *lines({"type": "start", "model": "demo-1"}, {"type": "progress", "text": "step 1"}),
        "a word beside",
        *lines({"type": "result", "outcome": "succeeded", "text": "It is done.", "tokens": tokens}),
    ]
    found = entries("demo", told)
    assert brief(found) == [
        ("turn", "started (demo-1)"),
        ("said", "step 1"),
        ("line", "a word beside"),
        ("said", "It is done."),
        ("turn", "ended"),
    ]
    assert found[-1].tokens == Tokens(9, 2, 0, 0)
    assert read("demo", told)[0].answer == "It is done."
    ended = {"type": "result", "outcome": "failed", "detail": "no", "text": "no"}
    failing = lines({"type": "progress", "text": "half"}, ended)
    assert brief(entries("demo", failing))[1:] == [("error", "no"), ("turn", "failed")]
    assert read("demo", failing, 1)[0].answer == "half"


def test_programs_without_a_parser_show_their_lines():
    told = ["one", "", '  {"type": "result"}', "two\r"]
    expected = [("line", "one"), ("line", ""), ("line", told[2]), ("line", "two")]
    assert brief(entries("shell", told)) == expected
    verdict, _ = read("shell", told)
    assert (verdict.answer, verdict.result) == ("", {"summary": "two"})


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"pattern": "def main", "path": "src"}, "def main"),
        ({"file_path": "a.py", "old_string": "x", "new_string": "y"}, "a.py"),
        ({"command": ["ls", "-l"]}, "ls -l"),
        ({"url": "https://example.org", "prompt": "read"}, "https://example.org"),
        ({"task": "t1"}, "t1"),
        ({"count": 3, "odd": True}, '{"count": 3, "odd": true}'),
        ({"command": 7}, '{"command": 7}'),
        ({}, ""),
        (None, ""),
        ("words", "words"),
        ([1, "a"], '[1, "a"]'),
    ],
)
def test_the_main_argument_of_a_tool(arguments, told):
    assert main_argument(arguments) == told


HOSTILE = "\x1b]0;title\x07\x1b[2J<script>\u202eevil\u2066\u200b\x00\r\nnext\ttab\x9b1m"


@pytest.mark.parametrize("agent", AGENTS)
def test_nothing_that_an_agent_writes_is_obeyed(agent):
    shown = "\\x1b]0;title\\x07\\x1b[2J<script>\\u202eevil\\u2066\\u200b\\x00\nnext\ttab\\x9b1m"
    told = {
        "claude": [answer(HOSTILE), uses(HOSTILE, command=HOSTILE)],
        "codex": [item("completed", "agent_message", text=HOSTILE),
                  item("started", "mcp_tool_call", tool=HOSTILE, arguments={"query": HOSTILE})],
        "gemini": [piece(HOSTILE), {"type": "tool_use", "tool_name": HOSTILE,
                                    "parameters": {"path": HOSTILE}}],
        "opencode": [{"type": "text", "part": {"text": HOSTILE}},
                     {"type": "tool_use", "part": {"tool": HOSTILE, "state": {"input": HOSTILE}}}],
        "demo": [{"type": "progress", "text": HOSTILE}],
    }  # fmt: skip
    if agent not in told:  # a program that prints lines
        assert entries(agent, ["\x1b[2J\u202e<b>\x00"]) == [
            Entry("line", "\\x1b[2J\\u202e<b>\\x00")
        ]
        return
    found = entries(agent, lines(*told[agent]))
    assert found[0] == Entry("said", shown)
    flat = shown.replace("\n", " ").replace("\t", " ")
    assert all((each.tool, each.argument) == (flat, flat) for each in found if each.kind == "tool")


@pytest.mark.parametrize("agent", ["claude", "shell"])
@pytest.mark.parametrize("letter", ["a", "\u00fc", "\x1b", "\U000e0001", "\ud800"])
def test_texts_are_bounded(agent, letter):
    for length in (TEXT_BYTES // 12, TEXT_BYTES + 1, 3 * TEXT_BYTES):
        words = letter * length
        (found,) = entries(agent, [json.dumps(answer(words)) if agent == "claude" else words])
        data = found.text.encode()
        assert len(data) <= TEXT_BYTES
        assert found.truncated == (length > TEXT_BYTES // 12)
    whole = "\u20ac" * TEXT_BYTES
    assert len(read("claude", lines(answer(whole), result(whole)))[0].answer.encode()) <= TEXT_BYTES
    (tool,) = entries("claude", lines(uses("B" * 10_000, command="\x1b" * 100_000)))
    assert (len(tool.tool), len(tool.argument)) == (TOOL_LETTERS, ARGUMENT_LETTERS)


def test_a_cursor_of_something_else_is_refused():
    for cursor in ("", "0", "1.2", "1.2.3.4", "a.b.c", "-1.0.1", "1.0.\u0661", "9" * 17 + ".0.1"):
        if cursor:
            with pytest.raises(Invalid, match="not a cursor"):
                Place.parse(cursor)
    assert Place.parse(None) == Place.parse("0.0.1") == Place()
    assert str(Place(7, 2, 5)) == "7.2.5"


SHORT = st.lists(LINES.filter(lambda line: "\n" not in line), max_size=8)
PIECES = st.lists(st.sampled_from(["a", "bc", " "]).map(lambda words: json.dumps(piece(words))))


@given(st.sampled_from(AGENTS), SHORT)
def test_no_output_breaks_a_transcript(agent, told):
    for entry in entries(agent, told):
        assert entry.kind in KINDS - {"answer"}
        assert len(entry.text.encode()) <= TEXT_BYTES
        assert entry.tokens is None or all(count >= 0 for count in entry.tokens)
        for words in (entry.text.replace("\n", "").replace("\t", ""), entry.tool, entry.argument):
            assert not any(ord(letter) < 32 or letter == "\u202e" for letter in words)


@given(
    st.sampled_from(AGENTS),
    st.tuples(SHORT, PIECES, SHORT).map(lambda parts: [*parts[0], *parts[1], *parts[2]]),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), max_size=40),
)
def test_pages_of_a_log_that_grows_are_the_whole(agent, told, looks):
    """Each look sees some more lines, and takes some entries; the last one sees everything."""
    whole = entries(agent, told)
    place, seen = Place(), 0
    given: list[Numbered] = []
    for most, more in [*looks, (10**6, len(told))]:
        seen = min(len(told), seen + more)
        transcript = Transcript(parser_for(shipped()[agent]), place)
        given += islice(transcript.read(placed(told[:seen], place.offset)), most)
        place = Place.parse(str(transcript.place))
    given += transcript.rest()
    assert [each.number for each in given] == list(range(1, len(whole) + 1))
    assert [each.entry for each in given] == whole
