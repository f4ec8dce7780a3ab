"""A durable queue in the order in which the planner reads it."""
