"""Transactions: look, plan, commit; one life of an attempt; usage; decisions."""
