"""Notifications: a command with JSON on standard input, or a signed webhook."""
