"""What the tidy tests look at: the files that are, or would be, in the repository."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "fairlane"
GATES = PACKAGE / "planner" / "gates"


@cache
def files() -> tuple[str, ...]:
    """Paths from the root, sorted; what git ignores is left out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(sorted(path for path in set(listed.splitlines()) if (ROOT / path).is_file()))


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """Every node of a source; several tests look at them."""
    return tuple(ast.walk(ast.parse(source)))


@cache
def texts() -> dict[str, str]:
    """Every file that is text, by its path."""
    found = {}
    for path in files():
        try:
            found[path] = read(path)
        except UnicodeDecodeError:
            continue
    return found


def gates() -> list[str]:
    """The names of the gates: the folder is the registry."""
    return sorted(path.stem for path in GATES.glob("*.py") if not path.name.startswith("_"))
