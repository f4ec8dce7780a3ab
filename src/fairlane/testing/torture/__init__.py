"""Torture: the real scheduler in virtual time, with everything that can go wrong.

`torture(store="memory", seed=1, events=10_000)` makes histories and gives a report;
`replay(history)` plays one again. `Rates` say how often each fault occurs; `Make` is what makes a
store of your own.
"""

from __future__ import annotations

from fairlane.testing.torture.faults import Rates
from fairlane.testing.torture.history import History
from fairlane.testing.torture.playing import Played, play, replay
from fairlane.testing.torture.run import Report, torture
from fairlane.testing.torture.shrinking import shrink
from fairlane.testing.torture.stores import Make

__all__ = ["History", "Make", "Played", "Rates", "Report", "play", "replay", "shrink", "torture"]
