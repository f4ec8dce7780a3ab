"""Scopes in words."""

from __future__ import annotations


def scope_text(scope: str) -> str:
    """`everything`, `project web`."""
    sort, _, name = scope.partition(":")
    return f"{sort} {name}" if name else "everything"
