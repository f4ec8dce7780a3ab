"""The agents that come with Fairlane, and the account that each draws on."""

from __future__ import annotations

#: Runs a command as it is given.
SHELL = "shell"
#: Who runs a task that has no command where nobody names an agent.
DEFAULT_AGENT = "claude"
SHIPPED = ("claude", "codex", "gemini", "opencode", "shell", "demo")
#: Agent -> the pool whose limits it shares; an agent that is not here draws on none.
POOLS = {"claude": "anthropic", "codex": "openai", "gemini": "google", "demo": "demo"}


def agent_of(own: str | None, project: str | None, default: str | None, has_command: bool) -> str:
    """Who runs a task: its own agent; `shell` a command; else its project's, or the default."""
    return own or (SHELL if has_command else project or default or DEFAULT_AGENT)
