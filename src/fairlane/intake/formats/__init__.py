"""Formats: how others write work down, as far as a source reads it."""
