"""Work comes in: what callers give becomes tasks, or is refused by name."""
