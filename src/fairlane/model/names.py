"""The names of the product in documents, files and branches."""

from __future__ import annotations

from typing import Final

#: Of Fairlane, as `pyproject.toml` has it.
VERSION: Final = "0.1.0"
#: The first key of every document.
SCHEMA: Final = "fairlane/1"
#: The former name of the product: only for files and branches that it wrote.
OLD_NAME = "fairlead"
