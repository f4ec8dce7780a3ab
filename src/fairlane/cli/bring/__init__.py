"""Verbs for work that is somewhere else already."""
