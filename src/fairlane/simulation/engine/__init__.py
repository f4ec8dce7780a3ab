"""The engine: a world under a policy, event by event, by the code that schedules in earnest."""

from fairlane.simulation.engine.simulate import simulate

__all__ = ["simulate"]
