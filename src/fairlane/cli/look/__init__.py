"""What happens and why: reads that change nothing."""
