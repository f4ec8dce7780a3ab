"""Groups as operations: made, changed, and added as whole trees or from recipes."""
