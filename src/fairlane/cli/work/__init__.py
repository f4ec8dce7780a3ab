"""Verbs that run agents."""
