"""Operations: one function each, asked by every interface, with plain values as JSON has them.

`calls` holds the functions, `table` says how each is called over HTTP and MCP, `checking` looks at
what came from outside, `documents` describes the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.service.desk import Desk


def answer(desk: Desk, name: str, /, **arguments: Any) -> dict[str, Any]:
    """The answer of an operation, by its name, to values that need no look from outside."""
    from fairlead.service.operations import calls

    function: Any = getattr(calls, "list_tasks" if name == "list" else name)
    document: dict[str, Any] = function(desk, **arguments)
    return document
