"""Extras: what to install for a part of Fairlane that is not there."""

from __future__ import annotations

import re
import shlex
import sys


def install_hint(extra: str) -> str:
    """The command that adds an extra, by the names of the packages that it needs.

    It does not name Fairlane itself: a registry may know another package by that name.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        needs = requires("fairlane") or []
    except PackageNotFoundError:  # run from a tree that was never installed
        needs = []
    marked = re.compile(rf"(.+?)\s*;.*extra == ['\"]{extra}['\"]")
    names = [match[1] for need in needs if (match := marked.match(need))]
    if not names:
        return f"Install Fairlane with its extra `{extra}`."
    return f"Install what it needs: {shlex.join([sys.executable, '-m', 'pip', 'install', *names])}"
