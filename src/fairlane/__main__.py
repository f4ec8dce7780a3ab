"""`python -m fairlane`."""

from fairlane.cli.main import main

main()
