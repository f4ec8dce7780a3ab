"""A store without a file: the same seam over dictionaries, for tests and the simulator."""
