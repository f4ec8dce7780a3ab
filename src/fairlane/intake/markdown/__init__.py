"""Markdown files as work: their front matter and history, and cards as files."""
