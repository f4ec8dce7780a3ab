"""Every planted bug, in the order in which it is told of."""

from __future__ import annotations

from tests.torture.planted import accounts, leases, plans, tasks
from tests.torture.planted.bug import Bug

BUGS: dict[str, Bug] = {
    each.name: each for each in (*leases.BUGS, *plans.BUGS, *tasks.BUGS, *accounts.BUGS)
}
