"""How it runs: launch, adopt, stop. Executors are found by their name."""
