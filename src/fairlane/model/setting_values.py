"""Values that only the settings file has: patterns, names of variables, secrets, addresses."""

from __future__ import annotations

import re

from fairlane.model.errors import Invalid
from fairlane.model.instant import Micros
from fairlane.model.values import duration, entries, line, lines, wrong

_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*\*?"


def patterns(value: object) -> tuple[str, ...]:
    patterns = lines(value)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            hint = "See https://docs.python.org/3/library/re.html for what may be written."
            raise Invalid(f"not a regular expression: {pattern!r}: {error}", hint) from error
    return patterns


def variable(value: object) -> str:
    """The name of a variable, or the beginning of names and a `*`."""
    name = line(value)
    if not re.fullmatch(_VARIABLE, name):
        raise wrong("the name of a variable", value, 'Write ["NAME"], or ["NAME_*"] for many.')
    return name


def secret(value: object) -> str:
    """One line of text; no error shows it."""
    try:
        return line(value)
    except Invalid as error:
        raise Invalid("not a line of text", error.hint) from None


def webhook(value: object) -> str:
    """An address that can be sent to; no error shows it."""
    from urllib.parse import urlsplit

    hint = 'Write it as "https://host/path", in ASCII and without blanks.'
    url = secret(value)
    try:
        parts = urlsplit(url)
        is_good = parts.hostname and parts.port != 0 and url.isascii() and " " not in url
    except ValueError:
        raise Invalid("not a URL", hint) from None
    if parts.scheme not in ("http", "https"):
        raise Invalid("neither http nor https", hint)
    if not is_good:
        raise Invalid("not a URL", hint)
    return url


def stop(value: object) -> tuple[Micros, ...]:
    """Two durations, or one that is used for both."""
    steps = entries(value) if isinstance(value, list) else (value, value)
    if len(steps) != 2:
        raise wrong("two durations", value, 'Write them as ["10s", "5s"].')
    return tuple(duration(step) for step in steps)
