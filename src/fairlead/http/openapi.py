"""The OpenAPI document, made from the table of operations."""

from __future__ import annotations

from typing import Any


def openapi() -> dict[str, Any]:
    """The whole document."""
    return {"openapi": "3.1.0"}
