"""Who does the work: one adapter a file, and the account that each agent draws on."""

from __future__ import annotations

#: The agents that come with Fairlead.
SHIPPED = ("claude", "codex", "gemini", "opencode", "shell", "demo")
#: Agent -> the pool whose limits it shares; an agent that is not here draws on none.
POOLS = {"claude": "anthropic", "codex": "openai", "gemini": "google", "demo": "demo"}
