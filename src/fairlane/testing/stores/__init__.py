"""The parts of the suite for stores."""
