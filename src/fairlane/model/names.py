"""What a name may look like: it becomes a path and a branch."""

from __future__ import annotations

import re

from fairlane.model.errors import Invalid

#: What the product was called before: only for what it wrote then.
OLD_NAME = "fairlead"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def is_name(text: object) -> bool:
    """Whether this may name a task, project, group or workspace."""
    return (
        isinstance(text, str)
        and _NAME.fullmatch(text) is not None
        and ".." not in text
        and not text.endswith((".", ".lock"))
    )


def check_name(what: str, text: object) -> str:
    """The name itself, or an error that says what a name may be."""
    if not is_name(text):
        raise Invalid(
            f"not a {what} name: {text!r}",
            "Use 1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit, "
            "without '..' and not ending in '.' or '.lock'.",
        )
    return str(text)
