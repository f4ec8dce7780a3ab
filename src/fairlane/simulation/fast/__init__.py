"""The fast engine: what the full one says, without recording it."""

from fairlane.simulation.fast.simulate import simulate

__all__ = ["simulate"]
