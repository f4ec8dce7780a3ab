"""A context that reads the policy again only after people have acted: nobody else writes there."""

from __future__ import annotations

from fairlane.engine.context import Context
from fairlane.model.record import dataclass, field
from fairlane.policy.policy import Policy


@dataclass(slots=True)
class Deeds:
    """How often people have acted; shared by all contexts of one simulation."""

    count: int = 0


@dataclass(slots=True)
class SteadyContext(Context):
    """One of a simulation; a look at the file would cost more than a round."""

    deeds: Deeds = field(default_factory=Deeds)
    _read: tuple[int, Policy] | None = field(default=None, init=False, repr=False)

    def policy(self) -> Policy:
        """The policy in force."""
        count = self.deeds.count
        if self._read is None or self._read[0] != count:
            self._read = count, Context.policy(self)
        return self._read[1]
