"""Reading: another scheduler's files as keys; whatever nobody asks for is told as unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from fairlane.intake import files
from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND, show_duration

WHAT = "a file of that scheduler, or the folder that holds it"
NUMBER_MAX = 10**12
#: A file with more keys is no configuration; YAML can make many of few lines.
KEYS_MAX = 10_000
UNCHANGED = "Nothing was changed."


class Keys:
    """A nested document as dotted keys. `take` hands one out, typed; the rest is unknown."""

    def __init__(self, document: Mapping[str, Any], origin: str) -> None:
        self.origin = origin
        self._left = dict(islice(_flat(document, ""), KEYS_MAX + 1))
        if len(self._left) > KEYS_MAX:
            raise Invalid(f"{origin}: more than {KEYS_MAX} keys", UNCHANGED)

    def take(self, key: str, read: Callable[[Any], Any]) -> Any:
        """The value of a key; None where it is absent or null."""
        value = self._left.pop(key, None)
        if value is None:
            return None
        try:
            return read(value)
        except ValueError as accepted:
            raise refused(self.origin, key, value, str(accepted)) from None
        except Invalid as error:
            raise Invalid(f"{self.origin}: {key}: {error.message}", UNCHANGED) from None

    def take_all(self, prefix: str, read: Callable[[Any], Any]) -> dict[str, Any]:
        """The values below a prefix, by the rest of their key."""
        names = [key for key in self._left if key.startswith(prefix)]
        found = {name[len(prefix) :]: self.take(name, read) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def drop(self, *keys: str) -> None:
        """What says nothing about scheduling, such as a file's version."""
        for key in keys:
            self._left.pop(key, None)

    def unknown(self) -> list[str]:
        """The keys that nobody took."""
        return list(self._left)


def _flat(document: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def count(value: Any) -> int:
    """A whole number, 0 or more."""
    if type(value) is not int or not 0 <= value <= NUMBER_MAX:
        raise ValueError("a whole number from 0")
    return value


def signed(value: Any) -> int:
    """A whole number, also below 0."""
    if type(value) is not int or abs(value) > NUMBER_MAX:
        raise ValueError("a whole number")
    return value


def number(value: Any) -> float:
    """A number, 0 or more."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= NUMBER_MAX
    ):
        raise ValueError("a number from 0")
    return value


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError("text")
    return value


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def span(unit: int) -> Callable[[Any], str]:
    """A length in a unit (of so many microseconds), as it is written here."""

    def read(value: Any) -> str:
        return show_duration(round(number(value) * unit) // 1000 * 1000)

    return read


SECONDS, MILLISECONDS, HOURS = span(SECOND), span(SECOND // 1000), span(3600 * SECOND)


def refused(origin: str, key: str, value: Any, accepted: str) -> Invalid:
    """A value that cannot be what its key says."""
    shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:59] + "…"
    return Invalid(f"{origin}: {key} = {shown} is refused: accepted is {accepted}", UNCHANGED)


def read_yaml(path: Path) -> Keys:
    """The keys of a YAML file."""
    import yaml

    try:
        document = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise Invalid(f"{path}: not YAML: {reason}", UNCHANGED) from error
    return _keys(document, path)


def read_json(path: Path) -> Keys:
    """The keys of a JSON file."""
    return _keys(files.parse_json(read_text(path), str(path), WHAT), path)


def _keys(document: Any, path: Path) -> Keys:
    """An empty file has no keys; one that holds something else is not what was promised."""
    if document is not None and not isinstance(document, Mapping):
        raise Invalid(f"{path}: not a table of keys", UNCHANGED)
    try:
        return Keys(document or {}, str(path))
    except RecursionError as error:  # YAML can hold itself
        raise Invalid(f"{path}: it holds itself", UNCHANGED) from error


def read_text(path: Path) -> str:
    """A file's text."""
    return files.read_text(path, WHAT)


def inside(path: Path, *names: str) -> list[Path]:
    """The file itself, or those of these names in a folder; a folder without any is refused."""
    if not path.is_dir():
        return [path]
    found = [path / name for name in names if (path / name).is_file()]
    if not found:
        raise Invalid(f"{path}: there is no {' or '.join(names)} in this folder", UNCHANGED)
    return found
