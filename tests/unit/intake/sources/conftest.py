"""Samples of the public suite are used here too: its asserts are to be told in full."""

from __future__ import annotations
