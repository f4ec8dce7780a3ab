"""Places of tasks: projects, kinds and depths; each place is a lane."""

from __future__ import annotations

KINDS = {"plan": 40, "spec": 60, "phase": 80, "code": 100}
DEPTHS = 5
#: Lanes of one project, and of all where nothing else is said.
EACH, LANES = len(KINDS) * DEPTHS, 300
Place = tuple[str, str, int]


def places(lanes: int = LANES, each: int = EACH) -> list[Place]:
    """So many places, of which one project has `each` at most."""
    kinds = [(kind, depth) for depth in range(DEPTHS) for kind in reversed(KINDS)]
    return [(f"project-{at // each:03}", *kinds[at % each]) for at in range(lanes)]
