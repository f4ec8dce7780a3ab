"""One rule, one file, one sentence, and a test."""

from __future__ import annotations

import ast
import re

import pytest

from tests.tidy.repository import GATES, gates, texts


@pytest.mark.parametrize("gate", gates())
def test_a_gate_says_its_rule_in_one_line(gate):
    rule = ast.get_docstring(ast.parse((GATES / f"{gate}.py").read_text(encoding="utf-8")))
    assert rule, f"gate {gate} has no docstring"
    assert "\n" not in rule, f"gate {gate} needs more than one line to say its rule"
    assert rule.endswith("."), f"gate {gate}: the rule is a sentence"


@pytest.mark.parametrize("gate", gates())
def test_a_gate_has_a_test(gate):
    word = re.compile(rf"\b{gate}\b")
    mentions = [
        path
        for path, text in texts().items()
        if path.startswith("tests/") and not path.startswith("tests/tidy/") and word.search(text)
    ]
    assert mentions, f"no test mentions gate {gate}"
