"""One thing and what is known of it, line by line; and what people type for it."""

from __future__ import annotations

from typing import Any

from fairlane.cli.output import safe, wrapped
from fairlane.cli.values import count
from fairlane.model.errors import Invalid


def facts(told: dict[str, str]) -> str:
    """Names and values under each other; what is empty is left out."""
    rows = {name.replace("_", " "): text for name, text in told.items() if text}
    wide = max(map(len, rows), default=0)
    return "\n".join(
        wrapped(safe(text), wide + 4, f"  {name:{wide}}  ") for name, text in rows.items()
    )


def shown(value: Any) -> str:
    """A value in one line; nothing where there is none."""
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def usd(dollars: float | None) -> str:
    """`$1.23`; nothing where nothing was spent or said."""
    return f"${dollars:,.2f}" if dollars else ""


def number(name: str, text: str) -> int:
    """A whole number, negative ones too: the rules refuse them by name."""
    try:
        return int(text)
    except ValueError:
        option = f"--{name.replace('_', '-')}"
        raise Invalid(f"{option}: not a whole number: {text!r}", "Give 0, 1, 2, …") from None


def budget(text: str) -> dict[str, Any]:
    """`tokens=50000,window=24h` as a table."""
    held: dict[str, Any] = {}
    for part in text.split(","):
        name, sign, value = part.strip().partition("=")
        if not sign:
            raise Invalid(f"--budget: not NAME=VALUE: {part!r}", "Write tokens=50000,window=24h.")
        if name == "tokens":
            held[name] = count(value)
        elif name in ("usd", "warn_at"):
            held[name] = _fraction(name, value)
        else:
            held[name] = value
    return held


def _fraction(name: str, text: str) -> int | float:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise Invalid(f"--budget: {name}: not a number: {text!r}", "Write usd=5.50.") from None
