"""How fast Fairlead is, beside others, in one run. `make bench`."""
