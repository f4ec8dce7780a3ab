"""The table, the functions that it names and the types of their answers belong together."""

from __future__ import annotations

import ast
import inspect
from textwrap import dedent

import pytest

from fairlane.app.verbs import Fairlane
from fairlane.service.operations.call import function_of
from fairlane.service.operations.table import OPERATIONS

#: Answers with more keys than those that the table promises.
WIDER = {"group_show": "FullGroup", "group_set": "GroupSet", "group_add": "GroupAnswer | TreeAdded"}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_function_takes_what_the_table_says_and_returns_its_answer(name: str):
    operation, function = OPERATIONS[name], function_of(name)
    assert set(list(inspect.signature(function).parameters)[1:]) == set(operation.takes)
    returned = function.__annotations__["return"].rpartition(".")[2]
    assert returned == f"{WIDER.get(name, operation.gives)}Answer"
    assert set(operation.converts) | set(operation.needs) <= set(operation.takes)
    assert (function.__doc__ or "").strip().splitlines()[0].endswith(".")


def test_a_method_returns_the_answer_of_its_operation():
    asked = set()
    for name, method in inspect.getmembers(Fairlane, inspect.isfunction):
        tree = ast.parse(dedent(inspect.getsource(method)))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if ast.unparse(call.func) == "self.ask" and isinstance(call.args[0], ast.Constant):
                operation = OPERATIONS[str(call.args[0].value)]
                asked.add(operation.name)
                returned = method.__annotations__["return"].rpartition(".")[2]
                assert returned == f"{operation.gives}Answer", name
    assert asked == set(OPERATIONS) - {"decision"}
