"""Torture: the real scheduler in virtual time, with everything that can go wrong.

`torture(store="memory", seed=1, events=10_000)` makes histories and gives a report;
`replay(history)` plays one again.
"""

from __future__ import annotations

from fairlane.testing.torture.history import History
from fairlane.testing.torture.playing import Played, play, replay
from fairlane.testing.torture.run import Report, torture
from fairlane.testing.torture.shrinking import shrink

__all__ = ["History", "Played", "Report", "play", "replay", "shrink", "torture"]
