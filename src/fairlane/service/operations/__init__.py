"""Operations: one function each, asked by every interface, with plain values as JSON has them.

`calls` and `house` hold the functions, `table` says how each is called over HTTP and MCP,
`checking` looks at what came from outside, `together` does several at once, `documents` describes
the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.service.desk import Desk


def function_of(name: str) -> Callable[..., dict[str, Any]]:
    """The function of an operation; its first argument is the desk."""
    from fairlane.service.operations import calls

    spelled = "list_tasks" if name == "list" else name
    found: Callable[..., dict[str, Any]] | None = getattr(calls, spelled, None)
    if found is None:
        from fairlane.service.operations import house

        found = getattr(house, spelled)
    return found


def answer(desk: Desk, name: str, /, **arguments: Any) -> dict[str, Any]:
    """The answer of an operation, by its name, to values that need no look from outside."""
    return function_of(name)(desk, **arguments)
