"""The model: what a store must hold, kept beside it from the writes that were committed."""

from fairlane.testing.torture.model.comparing import differences
from fairlane.testing.torture.model.rows import Model

__all__ = ["Model", "differences"]
