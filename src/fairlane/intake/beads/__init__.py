"""Beads: their records, the graph between them, and how Gas Town schedules them."""
