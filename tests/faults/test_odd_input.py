"""Odd input: all of a file or nothing of it, the line named, no terminal driven."""

from __future__ import annotations

import json
import unicodedata

import pytest

from fairlane.store.sqlite.store import SqliteStore
from tests.acceptance.commands import fairlane
from tests.faults.places import Home, refused

pytestmark = pytest.mark.slow
LINES = 10_000


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


def file_of(home: Home, lines: list[object]) -> str:
    """A file of tasks; what is no text already is written as JSON."""
    home.folder.mkdir(exist_ok=True)
    path = home.folder / "tasks.jsonl"
    rows = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8", errors="surrogatepass")
    return str(path)


def count(home: Home) -> int:
    """Every task that is kept."""
    store = SqliteStore.open(home.file)
    try:
        assert store.check() == []
        with store.read() as reading:
            return sum(tally.count for tally in reading.tallies())
    finally:
        store.close()


#: Tried in a file of ten thousand lines; the others in one of a hundred.
MANY = ("not JSON", "a bad id", "a need that is not there")
BAD = {
    "not JSON": ("{not json", "not JSON"),
    "half a line": ('{"id": "x", "prompt": "cut', "not JSON"),
    "a list": ("[1, 2]", "not a task"),
    "a number": ("17", "not a task"),
    "a bad id": ({"id": "../etc/passwd"}, "id"),
    "a project that is not there": ({"project": "nobody"}, "nobody"),
    "a need that is not there": ({"needs": ["nobody"]}, "nobody"),
    "a parent that is not there": ({"parent": "nobody"}, "nobody"),
    "itself": ({"id": "self", "needs": ["self"]}, "self"),
    "a priority of words": ({"priority": "urgent"}, "priority"),
    "a time that is none": ({"not_before": "tomorrow-ish"}, "not_before"),
    "a negative estimate": ({"estimate_tokens": -5}, "estimate_tokens"),
    "a number past all numbers": ({"priority": 10**30}, "priority"),
    "a command for a shell": ({"command": "rm -rf /"}, "command"),
    "an artifact outside": ({"artifacts": ["../../secret"]}, "artifact"),
}


@pytest.mark.parametrize("what", BAD)
def test_one_bad_line_among_many_adds_nothing_and_is_named(home, what):
    line, words = BAD[what]
    total = LINES if what in MANY else 100
    lines: list[object] = [{"id": f"t{n}", "prompt": "p"} for n in range(total)]
    lines[total - 3] = line
    said = home("add", "--file", file_of(home, lines))
    refused(said, said.code, said.document["error"]["code"], f"tasks.jsonl:{total - 2}: ")
    assert said.code in (1, 2)
    assert words in said.document["error"]["message"]
    assert count(home) == 0


def test_a_good_file_of_many_lines_is_added_whole(home):
    lines: list[object] = [
        {"id": f"t{n}", "needs": [f"t{n - 1}"] if n else []} for n in range(LINES)
    ]
    told = home.done("add", "--file", file_of(home, lines))
    assert len(told["tasks"]) == LINES == count(home)
    assert len(home.done("lease")["leases"]) == 1


@pytest.mark.parametrize("length", [2, 3, 500])
def test_a_circle_of_needs_is_refused_and_named(home, length):
    lines: list[object] = [
        {"id": f"t{n}", "needs": [f"t{(n + 1) % length}"]} for n in range(length)
    ]
    said = home("add", "--file", file_of(home, lines))
    refused(said, said.code, said.document["error"]["code"], "t0")
    assert "cycle" in said.document["error"]["message"].lower()
    assert count(home) == 0


@pytest.mark.parametrize("text", ["", "\n\n", "   \n\t\n"])
def test_an_empty_file_adds_nothing(home, text):
    home.folder.mkdir()
    path = home.folder / "tasks.jsonl"
    path.write_text(text, encoding="utf-8")
    said = home("add", "--file", path)
    if said.code:
        refused(said, 2, said.document["error"]["code"])
    else:
        assert said.document["tasks"] == []


def test_a_file_that_is_not_there_or_not_text_is_named(home):
    refused(home("add", "--file", home.folder / "no.jsonl"), 2, "invalid", "no.jsonl")
    home.folder.mkdir(exist_ok=True)
    path = home.folder / "tasks.jsonl"
    path.write_bytes(b'{"prompt": "\xff\xfe"}\n')
    said = home("add", "--file", path)
    refused(said, 2, said.document["error"]["code"], "tasks.jsonl")


def test_an_id_that_comes_twice_is_one_task(home):
    lines: list[object] = [{"id": "a", "title": "one"}, {"id": "b"}, {"id": "a", "title": "two"}]
    told = home.done("add", "--file", file_of(home, lines))["tasks"]
    assert [(row["id"], row["created"]) for row in told] == [("a", True), ("b", True), ("a", False)]
    assert home.done("show", "a")["task"]["title"] == "one"
    assert count(home) == 2


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a..b", "-rf", "a/b", "a b", "a\nb", "ü", "a.lock", "a.", "x" * 129, "\x1b[2J",
     "a\x00b", "~", "$(id)", "@{-1}"],
)  # fmt: skip
def test_an_id_that_could_be_no_path_or_branch_is_refused(home, name):
    said = home("add", "--file", "-", text=json.dumps({"id": name}))
    refused(said, 2, said.document["error"]["code"], "id")
    assert count(home) == 0


@pytest.mark.parametrize("name", ["a", "0", "A.b_c-d", "x" * 128, "t10", "a.locks", "lock"])
def test_an_id_that_fits_is_kept_as_it_is(home, name):
    assert home.done("add", "--file", "-", text=json.dumps({"id": name}))["tasks"][0]["id"] == name


def test_a_prompt_of_a_megabyte_comes_back_as_it_went_in(home):
    line = "naïve 漢字 \U0001f600 \u202e \\ \" ' ` $HOME\n"
    prompt = line * (1_000_000 // len(line.encode()))
    home.done("add", "--id", "big", "-", text=prompt)
    assert home.done("lease")["leases"][0]["prompt"] == prompt


def test_text_of_every_sort_is_kept(home):
    texts = [
        "é",
        unicodedata.normalize("NFD", "é"),
        "漢字",
        "\U0001f600",
        "a\tb",
        "\u202eabc",
        " x ",
    ]
    lines: list[object] = [{"id": f"t{n}", "title": text} for n, text in enumerate(texts)]
    home.done("add", "--file", file_of(home, lines))
    kept = [home.done("show", f"t{n}")["task"]["title"] for n in range(len(texts))]
    assert kept == texts


def test_half_a_character_never_reaches_the_store(home):
    said = home("add", "--file", "-", text='{"id": "a", "title": "\\ud800"}')
    refused(said, 2, said.document["error"]["code"])
    assert count(home) == 0


ESCAPES = ["\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "\x9b31m", "a\rb", "\x08\x08", "\x00"]


@pytest.mark.parametrize("text", ESCAPES)
def test_what_would_drive_a_terminal_is_not_shown_as_it_is(home, text):
    said = home("add", "--file", "-", text=json.dumps({"id": "a", "title": text, "prompt": text}))
    if said.code:
        refused(said, 2, said.document["error"]["code"])
        return
    for verb in (["list"], ["show", "a"], ["status"], ["plan"], ["why", "a"], ["events"]):
        shown = fairlane(*verb, "--home", home.folder)
        assert shown.code == 0, shown
        raw = [each for each in shown.out if unicodedata.category(each) == "Cc" and each != "\n"]
        assert raw == [], (verb, raw)


def test_deep_and_strange_json_is_refused_and_named(home):
    for line in ('{"meta": ' + "[" * 100_000 + "]" * 100_000 + "}", '{"priority": NaN}',
                 '{"priority": 1e999}', '{"id": "a", "id": 7}', '{"vars": {"a": {}}}'):  # fmt: skip
        said = home("add", "--file", file_of(home, [{"id": "fine"}, line]))
        refused(said, 2, said.document["error"]["code"], "tasks.jsonl:2: ")
        assert count(home) == 0
