"""Masks: what must never stand in a log."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Keys and tokens of well-known shape.
BUILT_IN = (
    r"sk-[A-Za-z0-9_-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"AKIA[0-9A-Z]{16}",
    r"AIza[0-9A-Za-z_-]{30,}",
    r"xox[abposr]-[A-Za-z0-9-]{10,}",
    r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"(?i:bearer) [A-Za-z0-9._~+/-]{16,}=*",
)
_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential|auth")
#: A value that is shorter says too little to be looked for.
_VALUE_MIN = 6


def patterns(own: tuple[str, ...], env: Mapping[str, str]) -> tuple[str, ...]:
    """The built-in ones, the user's own, and the values of variables that are named as secrets."""
    values = [
        re.escape(value)
        for name, value in sorted(env.items())
        if _SECRET_NAME.search(name) and len(value) >= _VALUE_MIN
    ]
    return (*values, *own, *BUILT_IN)
