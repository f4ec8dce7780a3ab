"""What an event does to a task, a pool and an account. Pure: no clock, no chance, no I/O."""
