"""Recipes: a chain of tasks out of one prompt. A recipe is a short TOML file.

`about` says what it is for. Each `[[step]]` has a name, a prompt with placeholders, and fields of
the model; it needs the step before it unless it says `needs`. Placeholders are `{prompt}`,
`{title}`, `{id}` and `{folder}` (where the step's artifacts go), and of an earlier step, or of
`previous`, `{NAME.id}`, `{NAME.branch}` and `{NAME.folder}`. `{{word}}` stands for the braces.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from fairlane.careful_files import read_file
from fairlane.intake import fields
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.values import check_name, names, table, text

STEPS_MAX = 50
#: Fields of the model that a step may give.
FIELDS = (
    "kind", "title", "agent", "priority", "artifacts", "parallel", "timeout", "max_attempts",
    "labels", "locks", "template", "session", "merge", "base", "pool", "estimate_tokens",
    "carry", "context", "checks", "no_checks",
)  # fmt: skip
FILE_BYTES_MAX = 1_000_000
KEYS = ("name", "prompt", "needs", *FIELDS)
_OWN = ("prompt", "title", "id", "folder")
_OF_STEP = ("id", "branch", "folder")
_PLACEHOLDER = re.compile(r"\{\{([\w.-]+)\}\}|\{([\w-]+)(?:\.([\w-]+))?\}")


@dataclass(frozen=True, slots=True)
class Step:
    """One task of a recipe."""

    name: str
    prompt: str
    needs: tuple[str, ...]  # steps
    values: Mapping[str, object]  # fields of the model


@dataclass(frozen=True, slots=True)
class Recipe:
    """Steps in their order."""

    name: str
    about: str
    steps: tuple[Step, ...]

    def records(
        self, first: str, task: Mapping[str, object], folder: Path
    ) -> list[dict[str, object]]:
        """The tasks `first-STEP`; fields of a step override those of the task that was given.

        `folder` is where tasks have the folders of their artifacts.
        """
        title, meta = title_of(task), table(task.get("meta", {}))
        rows: list[dict[str, object]] = []
        for at, step in enumerate(self.steps):
            before = self.steps[at - 1].name if at else ""
            fill = _filler(first, step.name, before, task, title, folder)
            needs = [f"{first}-{name}" for name in step.needs] or task.get("needs", ())
            row: dict[str, object] = {**task, "title": f"{step.name}: {title}", **step.values}
            row |= {"id": f"{first}-{step.name}", "needs": needs}
            row["prompt"] = _PLACEHOLDER.sub(fill, step.prompt).strip()
            row["meta"] = {**meta, "recipe": self.name, "step": step.name}
            rows.append(row)
        return rows


def find(name: str, project: Project | None, home: Path) -> Recipe:
    """A recipe by name: the home folder's, else the repository's, else a shipped one."""
    folders = [home / "recipes"]
    if project is not None and project.repo:
        folders.append(Path(project.repo).expanduser() / ".fairlane" / "recipes")
    folders.append(Path(__file__).parent)
    check_name("recipe", name)
    for folder in folders:
        file = folder / f"{name}.toml"
        if file.exists():
            return parse(name, _read(file))
    known = {page.stem for folder in folders for page in folder.glob("*.toml")}
    hint = f"{did_you_mean(name, known)} Your own go to {folders[0]}."
    raise Invalid(f"there is no recipe {name!r}", hint, code="unknown_recipe")


def shipped() -> dict[str, str]:
    """The recipes that come with Fairlane, with what each is for."""
    files = sorted(Path(__file__).parent.glob("*.toml"))
    return {file.stem: parse(file.stem, _read(file)).about for file in files}


def parse(name: str, text: str) -> Recipe:
    """A recipe whose steps name only what there is."""
    try:
        document = tomllib.loads(text)
    except ValueError as error:
        raise Invalid(f"recipe {name}: not TOML: {error}", "Mend it.") from error
    for key in document:
        if key not in ("about", "step"):
            raise Invalid(
                f"recipe {name}: unknown key {key!r}", did_you_mean(key, ("about", "step"))
            )
    rows = document.get("step")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise Invalid(f"recipe {name} has no step", "Write one as [[step]].")
    if len(rows) > STEPS_MAX:
        raise Invalid(f"recipe {name}: {len(rows)} steps are too many", f"Use at most {STEPS_MAX}.")
    steps: list[Step] = []
    for at, row in enumerate(rows, 1):
        where = f"recipe {name}, step {row.get('name', at)}"
        try:
            steps.append(_step(row, [step.name for step in steps]))
        except Invalid as error:
            raise error.within(where) from None
    return Recipe(name, str(document.get("about", "")), tuple(steps))


def _step(row: Mapping[str, object], before: list[str]) -> Step:
    for key in row:
        if key not in KEYS:
            raise Invalid(f"unknown key {key!r}", did_you_mean(key, KEYS))
    name = check_name("step", row.get("name"))
    if name in before:
        raise Invalid("its name appears twice", "Give it another name.")
    prompt = text(row.get("prompt"))
    needs = names(row.get("needs", before[-1:]))
    for need in needs:
        if need not in before:
            hint = did_you_mean(need, before) if before else "The first step needs none."
            raise Invalid(f"needs {need!r}, which is no step before it", hint)
    _check(prompt, before)
    values = {key: row[key] for key in FIELDS if key in row}
    fields.read(values)
    return Step(name, prompt, needs, values)


def _check(prompt: str, before: list[str]) -> None:
    """Refuse a placeholder that nothing fills."""
    for _, word, part in _PLACEHOLDER.findall(prompt):
        if not word:
            continue
        known = [*_OWN, *(f"{step}.{attribute}" for step in before for attribute in _OF_STEP)]
        if before:
            known += ["previous", *(f"previous.{attribute}" for attribute in _OF_STEP)]
        asked = f"{word}.{part}" if part else word
        if asked not in known:
            message = f"unknown placeholder {{{asked}}}"
            raise Invalid(message, did_you_mean(asked, known), code="unknown_placeholder")


def _filler(
    first: str, step: str, before: str, task_values: Mapping[str, object], title: str, folder: Path
) -> Callable[[re.Match[str]], str]:
    def of(name: str, part: str) -> str:
        task = f"{first}-{name}"
        return {"id": task, "branch": f"fairlane/{task}", "folder": str(folder / task)}[part]

    own = {"prompt": str(task_values.get("prompt", "")), "title": title}

    def fill(match: re.Match[str]) -> str:
        braces, word, part = match.groups()
        if braces:
            return f"{{{braces}}}"
        if word == "previous":
            return of(before, part or "id")
        if part:
            return of(word, part)
        return own[word] if word in own else of(step, word)

    return fill


def _read(file: Path) -> str:
    try:
        return text(read_file(file, FILE_BYTES_MAX).decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Invalid(f"recipe {file.stem}: {file} cannot be read: {why}", "Mend it.") from error


def title_of(task: Mapping[str, object]) -> str:
    """What people read of the whole: its title, else the first line of its prompt."""
    lines = (line.strip() for line in str(task.get("prompt", "")).splitlines())
    return str(task.get("title") or next(filter(None, lines), ""))
