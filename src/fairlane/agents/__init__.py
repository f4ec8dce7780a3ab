"""Who does the work: command lines, and parsers of what the programs print."""
