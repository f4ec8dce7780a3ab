"""How fast Fairlane is, beside others, in one run. `make bench`."""
