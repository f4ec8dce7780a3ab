"""The promises: each a sentence with the function that checks it, and who checks them all."""

from fairlane.testing.torture.promises.base import PROMISES, Broken, Party, Promise
from fairlane.testing.torture.promises.checker import Checker
from fairlane.testing.torture.promises.holders import Ground

__all__ = ["PROMISES", "Broken", "Checker", "Ground", "Party", "Promise"]
