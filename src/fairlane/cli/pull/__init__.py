"""The pull protocol: whoever does the work calls these."""
