"""The queue: add, list, change and cancel tasks."""
