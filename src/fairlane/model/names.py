"""The names of the product in documents, files and branches."""

from __future__ import annotations

from typing import Final

#: The first key of every document.
SCHEMA: Final = "fairlane/1"
#: The former name of the product: only for files and branches that it wrote.
OLD_NAME = "fairlead"
