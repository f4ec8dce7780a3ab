"""What every SQL store shares: rows, questions, changes. A store adds a dialect, a connection."""
