"""Intake: turn what callers and sources give into tasks, or refuse it by name."""
