"""A repository in which agents have worked: a tidy change to look at, and one that means harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fairlane.service import projects
from tests.page.said import begun, ended, result, said, tool
from tests.page.windows import House

BEFORE = {
    "src/shop/cart.py": '''\
"""The cart: what somebody is about to buy."""

from __future__ import annotations

from shop.prices import Price


class Cart:
    """Items by their number."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def add(self, item: str, count: int = 1) -> None:
        # Zero takes nothing out.
        self.items[item] = self.items.get(item, 0) + count

    def total(self, prices: dict[str, Price]) -> Price:
        total = Price(0)
        for item, count in self.items.items():
            total = total + prices[item] * count
        return total
''',
    "src/shop/prices.py": "".join(f"PRICE_{n} = {n}\n" for n in range(40)),
    "web/cart.ts": '''\
// What the page shows of a cart.
export function label(count: number): string {
  if (count === 0) return "empty";
  return `${count} items`;
}
''',
    "docs/old-name.md": "# Cart\n\nA cart has items.\nEvery item has a price.\n",
    ".github/workflows/test.yml": "on: push\njobs:\n  test:\n    runs-on: linux\n",
    "logo.bin": "\0binary",
}  # fmt: skip
_ADD = "    def add(self, item: str, count: int = 1) -> None:\n"
_REFUSES = """\
        \"\"\"Put something in; a count below one is refused.\"\"\"
        if count < 1:
            raise ValueError(f"a count must be 1 or more, not {count}")
"""
AFTER = {
    "src/shop/cart.py": BEFORE["src/shop/cart.py"]
    .replace(f"{_ADD}        # Zero takes nothing out.\n", _ADD + _REFUSES)
    .replace("total = total + prices", "total += prices"),
    "tests/test_cart.py": '''\
import pytest

from shop.cart import Cart


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_refused(count):
    with pytest.raises(ValueError, match="1 or more"):
        Cart().add("tea", count)
''',
    "web/cart.ts": BEFORE["web/cart.ts"].replace(
        "return `${count} items`;", 'return count === 1 ? "1 item" : `${count} items`;'
    ),
    ".github/workflows/test.yml": BEFORE[".github/workflows/test.yml"] + "    timeout-minutes: 5\n",
    "logo.bin": "\0other",
}  # fmt: skip
ANSWER = """\
A cart refuses a count below one now, and says so.

- `Cart.add` raises `ValueError`; before, a negative count took items out silently.
- The page says “1 item”, not “1 items”.
- Three new tests; all 41 pass."""
EVIL = "<img src=x onerror=window.caught=1>"
NASTY_NAME = f"{EVIL}\u202egnp.\x1b[31m\n'\".html"
NASTY = f"</pre></code>{EVIL}<script>window.caught=1</script>\x1b[31m \u202eabc\u200b\n"
AGENT = """\
import os, pathlib, time
task = os.environ["FAIRLANE_TASK"]
def write(name, text):
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
if task == "nasty":
    write(NASTY_NAME, NASTY * 3)
    write("long.txt", "x" * 3_000_000)
    write("many.py", "".join(f"line_{n} = {n}\\n" for n in range(20_000)))
    pathlib.Path("not-\\udcff-utf8").write_bytes(bytes(range(256)))
elif task == "nice":
    for name, text in AFTER.items():
        write(name, text)
    os.rename("docs/old-name.md", "docs/cart.md")
for line in SAID.splitlines():
    print(line, flush=True)
    time.sleep(PAUSE)
"""  # fmt: skip
FOUND = "".join(f"src/shop/cart.py:{n}:    self.items[item]\n" for n in (15, 19, 20))
PASSED = "".join(f"tests/test_cart.py::test_{n} PASSED\n" for n in range(41)) + "41 passed in 0.52s"
SAID = "".join((
    begun(),
    said("I look at how a cart counts its items, and at who calls `add`."),
    tool("Grep", pattern="self.items"), result(FOUND),
    tool("Read", file_path="src/shop/cart.py"), result(BEFORE["src/shop/cart.py"]),
    said("A negative count takes items out without a word. I refuse it, and write the tests."),
    tool("Edit", file_path="src/shop/cart.py"), result("The file was updated."),
    tool("Write", file_path="tests/test_cart.py"), result("The file was written."),
    tool("Bash", command="python -m pytest -q tests"), result(PASSED),
    ended(ANSWER, 48_200),
))  # fmt: skip


def workshop(home: Path, pause: float = 0) -> House:
    """A home with the repository, and the tasks done in it; `pause`: seconds after each line."""
    repo = home.parent / "shop"
    git(home.parent, "init", "-q", "-b", "main", str(repo))
    for name, text in BEFORE.items():
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "The shop")
    script = home.parent / "agent.py"
    names: dict[str, object] = {
        "NASTY_NAME": NASTY_NAME,
        "NASTY": NASTY,
        "AFTER": AFTER,
        "SAID": SAID,
    }
    names |= {"PAUSE": pause}
    head = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    script.write_text(head + AGENT, encoding="utf-8")
    house = House(home)
    argv = f'["{sys.executable}", "{script}"]'
    settings = f'[worker]\nslots = 4\n[agents.claude]\nargv = {argv}\nparser = "claude"\n'
    (home / "fairlane.toml").write_text(settings, encoding="utf-8")
    checks = [["python3", "-c", "print('41 passed')"], ["git", "diff", "--check"]]
    values = {"repo": str(repo), "checks": checks, "merge": "merge", "agent": "claude"}
    projects.add_project(house.context, "shop", values)
    title = "A cart refuses a count below one"
    prompt = "A cart takes a negative count. Refuse it, and test that."
    house.add({"id": "nice", "project": "shop", "title": title, "prompt": prompt})
    house.add(
        {"id": "nasty", "project": "shop", "prompt": "Do harm", "merge": "keep", "no_checks": True}
    )
    failing = [["false"], ["true"]]
    broken = {"id": "broken", "project": "shop", "prompt": "Break it", "command": ["true"]}
    house.add({**broken, "checks": failing, "max_attempts": 1})
    words = [sys.executable, "-m", "fairlane", "--home", str(home), "run", "--until-idle"]
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, "HOME": str(home)})
    return house


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)
