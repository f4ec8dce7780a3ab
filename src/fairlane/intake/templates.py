"""Templates: a prompt with `{placeholders}`, tried when the task is added."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from fairlane.careful_files import read_file
from fairlane.model.errors import Refused, did_you_mean
from fairlane.model.project import Project

#: The prompt as it is.
NONE = "none"
#: Placeholders of every template, in addition to the task's own `vars`.
PLACEHOLDERS = (
    "id", "title", "prompt", "project", "kind", "group", "parent", "agent", "base", "workspace",
    "priority", "attempt", "error", "artifacts", "needs",
)  # fmt: skip
FILE_BYTES_MAX = 1_000_000

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}|\{(\w+)\}")


def find(name: str, project: Project, home: Path) -> str:
    """The text of a template: the repository's, else the home folder's."""
    folders = [Path(project.repo).expanduser()] if project.repo else []
    places = [folder / "templates" / f"{name}.md" for folder in (*folders, home)]
    for place in places:
        try:
            return read_file(place, FILE_BYTES_MAX).decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise Refused(f"template {name}: {place} cannot be read: {error.strerror}") from error
    looked = " and ".join(str(place) for place in places)
    known = {page.stem for place in places for page in place.parent.glob("*.md")} | {NONE}
    hint = f"{did_you_mean(name, known)} Looked for {looked}."
    raise Refused(f"there is no template {name!r}", hint, code="no_template")


def check(name: str, text: str, variables: Mapping[str, str]) -> None:
    """Refuse a template with an unknown placeholder."""
    known = {*PLACEHOLDERS, *variables}
    for _, placeholder in _PLACEHOLDER.findall(text):
        if placeholder and placeholder not in known:
            hint = f"{did_you_mean(placeholder, known)} Give it with --var {placeholder}=VALUE."
            message = f"template {name!r}: unknown placeholder {{{placeholder}}}"
            raise Refused(message, hint, code="unknown_placeholder")


def uses(text: str, placeholder: str, variables: Mapping[str, str]) -> bool:
    """Whether a template has this placeholder, and no variable of the task takes its place."""
    names = {name for _, name in _PLACEHOLDER.findall(text)}
    return placeholder in names and placeholder not in variables


def render(text: str, values: Mapping[str, object], variables: Mapping[str, str]) -> str:
    """The rendered prompt; `{{name}}` means the braces themselves."""

    def fill(match: re.Match[str]) -> str:
        if match[1]:
            return f"{{{match[1]}}}"
        if match[2] in variables:
            return variables[match[2]]
        value = values.get(match[2])
        if isinstance(value, tuple | list):
            return ", ".join(map(str, value))
        return "" if value is None else str(value)

    return _PLACEHOLDER.sub(fill, text)
