"""Rules and house: the policy, projects, and the care of the store."""
