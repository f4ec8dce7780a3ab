"""Diffs as markup: patches become hunks, lines become tokens, and everything stays text."""
