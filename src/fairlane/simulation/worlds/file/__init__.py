"""The parts of a workload file, each with its readers."""
