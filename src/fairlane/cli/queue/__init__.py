"""The queue: what comes in, what is in it, what is taken out."""
