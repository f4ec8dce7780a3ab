"""A program that acts as Claude Code does: for what README.md shows, without an account."""

import json
import os
import sys
from pathlib import Path

TASK = os.environ.get("FAIRLANE_TASK", "")
TESTS = """import unittest

from login import log_in


class LogIn(unittest.TestCase):
    def test_right(self):
        self.assertTrue(log_in({"ada": "x"}, "ada", "x"))

    def test_unknown(self):
        self.assertFalse(log_in({"ada": "x"}, "bob", "y"))
"""


def main() -> None:
    """Do what the task asks for."""
    sys.stdin.read()
    tell(type="system", subtype="init", model="opus")
    login, tests = Path("login.py").absolute(), Path("test_login.py").absolute()
    text = login.read_text()
    if TASK == "t1":
        say(type="text", text="I look at how the form logs in.")
        use("Read", text, file_path=str(login))
        login.write_text(text.replace("users[name] ==", "users.get(name) =="))
        use("Edit", "The file login.py has been updated.", file_path=str(login))
        end("Unknown names are refused now; they raised a KeyError.", 33_000, 2_279, 0.14)
    else:
        use("Read", text, file_path=str(login))
        tests.write_text(TESTS)
        use("Write", "File created successfully.", file_path=str(tests))
        end("Tests for a right password and for an unknown name.", 10_200, 933, 0.04)


def tell(**record: object) -> None:
    """One record a line."""
    print(json.dumps({"session_id": TASK, **record}), flush=True)


def say(**content: object) -> None:
    """A part of an answer of the model."""
    tell(type="assistant", message={"content": [content]})


def use(tool: str, result: str, **arguments: str) -> None:
    """A tool is called, and answers."""
    say(type="tool_use", id=tool, name=tool, input=arguments)
    content = [{"type": "tool_result", "tool_use_id": tool, "content": result}]
    tell(type="user", message={"content": content})


def end(words: str, tokens_in: int, tokens_out: int, dollars: float) -> None:
    """The final record."""
    usage = {"inputTokens": tokens_in, "outputTokens": tokens_out}
    tell(
        type="result", subtype="success", is_error=False, result=words, total_cost_usd=dollars,
        modelUsage={"opus": usage},
    )  # fmt: skip


if __name__ == "__main__":
    main()
