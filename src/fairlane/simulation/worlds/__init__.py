"""Worlds: of a workload file, of a trace, of what a store has seen."""
