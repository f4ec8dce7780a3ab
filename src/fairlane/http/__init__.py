"""The HTTP API: routes made from the table of operations, and a guard in front of everything."""
