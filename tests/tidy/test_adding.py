"""Following a page of `docs/adding` to the letter is enough: its files, and no others."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.additions import ADDITIONS, Addition
from tests.tidy.repository import ROOT, files, read

#: Most files that an addition may touch.
FILES_MAX = {"an-operation": 6, "a-gate": 8}


def section(page: str, title: str) -> str:
    """The text below a title of a page, up to the next one."""
    return read(f"docs/adding/{page}.md").split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def named_files(addition: Addition) -> set[str]:
    """The files in the first column of the page's table."""
    cells = re.findall(r"^\| `([^`]+)` \|", section(addition.page, "Files"), re.MULTILINE)
    return {cell.replace("NAME", addition.name) for cell in cells}


def checks(addition: Addition) -> list[list[str]]:
    """The commands of the page, one a line."""
    block = re.search(r"```text\n(.*?)```", section(addition.page, "Checks"), re.DOTALL)
    assert block
    return [shlex.split(line.replace("NAME", addition.name)) for line in block[1].splitlines()]


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.page)
def test_a_page_names_the_files_that_it_takes(addition: Addition):
    assert named_files(addition) == addition.files
    assert set(addition.edits) <= set(files()), "a file that the page names does not exist"
    assert not set(addition.new) & set(files())
    assert len(addition.files) <= FILES_MAX.get(addition.page, 8)


def test_every_page_is_followed():
    pages = {Path(path).stem for path in files() if path.startswith("docs/adding/")}
    assert pages - {"a-store"} == {addition.page for addition in ADDITIONS}


@pytest.mark.slow
@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.page)
def test_what_a_page_says_is_enough(addition: Addition, tmp_path: Path):
    tree = tmp_path / "tree"
    for path in files():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, tree / path)
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    follow(addition, tree)
    environment = os.environ | {
        "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}",
        "FAIRLANE_HOME": str(tmp_path / "home"),
    }
    for module, *arguments in checks(addition):
        command = [sys.executable, "-m", module, *arguments]
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{module} {arguments}\n{done.stdout}\n{done.stderr}"


def follow(addition: Addition, tree: Path) -> None:
    """Write what the page asks for."""
    for path, text in addition.new.items():
        (tree / path).write_text(text, encoding="utf-8")
    for path, edits in addition.edits.items():
        text = (tree / path).read_text(encoding="utf-8")
        for old, new in edits:
            assert text.count(old), f"{path} has no {old!r}"
            text = text.replace(old, new, 1)
        (tree / path).write_text(text, encoding="utf-8")
