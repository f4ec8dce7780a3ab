"""Simulations that a server makes: one call at a time, always in processes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlane.app.context_pool import ContextPool
from fairlane.model.errors import Busy

if TYPE_CHECKING:
    from fairlane.simulation.apart import Apart


class Simulations:
    """Makes what one caller asks for; other callers are asked to retry later."""

    def __init__(self, readers: ContextPool) -> None:
        self._readers = readers
        self._under_way: Apart | None = None

    async def ask(self, values: Mapping[str, Any]) -> Any:
        """The answer of `simulate`; when this call is cancelled, its processes end."""
        from fairlane.simulation import report
        from fairlane.simulation.apart import Apart
        from fairlane.simulation.simulate import orders_of

        if self._under_way is not None:
            hint = "One runs at a time. Retry when it has ended."
            raise Busy("another simulation is under way", hint)
        apart = self._under_way = Apart()
        try:
            orders = await self._readers.run(lambda context: orders_of(context.policy, **values))
            return report.together(await asyncio.to_thread(apart.answers, orders))
        finally:
            apart.end()
            self._under_way = None

    def close(self) -> None:
        """End what is under way."""
        if self._under_way is not None:
            self._under_way.end()
