"""What is told: the documents of status, summary and stats, and what they have in common."""
