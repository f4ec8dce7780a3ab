"""Workload files that are refused: what is wrong, where, and what to write instead."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from fairlane.model.errors import Invalid
from fairlane.simulation.worlds.workload import load_workload, parse_workload, read_text
from tests.unit.simulation.test_workload import WORK, workload

REFUSED: Mapping[str, tuple[str, str]] = {
    "[sourc]": ("unknown key 'sourc'", "Did you mean 'source'?"),
    "days = 0": ("days: 0 is out of range", "Give a whole number from 1 to 3660."),
    "begin = 2026-01-05T00:00:00": ("begin: time without a zone", "Add a zone"),
    "[[source]]\nat = ['0s']\nevry = '1h'": (
        "unknown key 'source[0].evry'", "Did you mean 'every'?",
    ),
    "[[source]]\nkind = 'x'": ("source[0] has none of at, every", "Give one of"),
    "[[source]]\nat = ['0s']\nevery = '1h'": ("source[0] has both at and every", "Give one of"),
    "[[source]]\nevery = '1h'": ("source s1 never ends", "Give the source until or most"),
    "[[source]]\nat = ['0s']\nproject = 'web'": ("source s1: there is no project 'web'", "Known"),
    "[[source]]\nat = ['0s']\nagent = 'cluade'": (
        "source s1: there is no agent 'cluade'", "Did you mean 'claude'?",
    ),
    "[[source]]\nat = ['0s']\nwork = 'slow'": (
        "source s1: no work is called 'slow'", "Write a table [work.slow].",
    ),
    "[[source]]\nat = ['0s']\nname = 'a.b'": ("source[0].name: not the name of a source", "Use no"),
    "[[source]]\nat = ['0s']\npriority = 'high'": ("source[0].priority: not a whole", "Give"),
    "[[source]]\nat = ['0s']\nsteps = [{ name = 'a', needs = ['b'] }]": (
        "source[0].steps[0]: no step before it is called 'b'", "The first step needs none.",
    ),
    "[[source]]\nat = ['0s']\nsteps = [{ name = 'a', count = 2 }, { name = 'b', parent = 'a' }]": (
        "source[0].steps[1]: a are several tasks", "A parent is one task.",
    ),
    "[[source]]\nat = ['0s']\nsteps = [{ name = 'a', count = 2 }, { name = 'a-1' }]": (
        "source[0]: two tasks would be called a-1", "Rename a step.",
    ),
    "[[source]]\nat = ['0s']\nsteps = [{ name = 'a', count = 600 }, { name = 'b', count = 600 }, "
    "{ name = 'c', needs = ['a', 'b'] }]": (
        "source[0].steps[2]: it needs 1,200 tasks", "Use at most 1,000.",
    ),
    f"[[source]]\nat = ['0s']\nname = '{'a' * 115}'": (
        "source[0]: its tasks would have ids of more than 128", "Shorten the name",
    ),
    "[[source]]\nat = ['0s']\nhours = {}": ("source[0] has both at and hours", "Keep one."),
    "[[source]]\nper_hour = 0\nuntil = '1h'": ("source[0].per_hour: a rate of 0", "Give a rate"),
    "[[source]]\nevery = '1s'\nuntil = '20d'": ("1,728,001 tasks are too many", "Use at most"),
    "[[source]]\nevery = '1h'\nuntil = '2h'\nhours = 'x'": (
        "source[0].hours: no hours are called 'x'", "Write a table [hours.x].",
    ),
    "[hours.x]\nfrom = '25:00'": ("hours.x: from: not a time of the day: '25:00'", "Write it as"),
    "[hours.x]\nbreaks = [['00:00', '24:00']]": ("hours.x: hours in which nothing is open", "Open"),
    "[work.x]\ntokens = 1": ("work.x has no duration", "Add duration"),
    "[work.x]\nduration = '1h'\nfailed = 0.6\nlost = 0.6": ("work.x: its rates are more", "Lower"),
    "[work.x]\nduration = { median = '2h', p90 = '1h' }": ("work.x.duration: p90 does not", "Give"),
    "[work.x]\nduration = { median = '2h' }": ("work.x.duration: neither median and p90", "Write"),
    "[work.x]\nduration = []": ("work.x.duration: an empty list", "Give at least"),
    "[work.x]\nduration = 5": ("work.x.duration: not a duration: 5", "Write it as 30s"),
    "[work.x]\nduration = '1h'\nfailed = 1.5": ("work.x.failed: 1.5 is out of range", "Give"),
    "[projects.web]\nweigth = 3": ("unknown key 'projects.web.weigth'", "Did you mean 'weight'?"),
    "[projects.web]\nrepo = '/etc'": ("w.toml: unknown key 'projects.web.repo'", "Known"),
    "[projects.web]\nweight = -1": ("projects.web: weight: -1 is out of range", "Give"),
    "[projects.'a b']\nweight = 1": ("projects.a b: not a proper name: 'a b'", "Use 1 to 128"),
    "[groups.a]\nparent = 'b'": ("there is no group 'b'", ""),
    "[pools.mine]": ("pools: there is no pool 'mine'", "Known"),
    "[[pools.openai.quota]]\nwindow = '1m'": ("pools.openai.quota[0] has neither", "Add one."),
    "[[pools.openai.outage]]\nfrom = '2h'\nuntil = '1h'": ("pools.openai.outage[0]: until", "Swap"),
    "[[worker]]\nslots = 2": ("worker[0] has no name", "Add name"),
    "[[worker]]\nname = 'a'\n[[worker]]\nname = 'a'": ("worker: 'a' appears twice", "Take one"),
    "[[worker]]\nname = 'a'\nhours = { days = ['mon'] }": ("worker a comes and goes", "Give"),
    "[[act]]\nat = '1h'\ndo = 'pase'": ("act[0].do: 'pase' is none of", "Did you mean 'pause'?"),
    "[[act]]\nat = '1h'\ndo = 'pause'\nscop = 'all'": ("act[0]: unknown argument 'scop'", "Did"),
    "[[act]]\nat = '1h'\ndo = 'project_set'\nname = 'x'\nvalues = { repo = '/' }": (
        "unknown key 'act[0].values.repo'", "Known",
    ),
    "[[act]]\ndo = 'pause'": ("act[0] has no at", "Add at"),
    "source = 3": ("source: not a list of tables: 3", "Write [[source]] above each."),
    "work = []": ("work: not a table: []", "Write [work] above its keys."),
    "x = ": ("not TOML", "A workload is TOML"),
    '{"trace": 1}': ("not TOML", "This looks like JSON or a trace"),
    "days = 1e99999999999999999999": ("not TOML: 1e99999999999999999999 has too many digits", ""),
    "days = 0x" + "f" * 5000: ("not TOML: a number has more than 64 bits", ""),
    "days = 1\n" + "a." * 100 + "b = 1": ("not TOML: a key of more than 100 parts (at line 2)", ""),
    "[" + "a . " * 100 + "b]": ("not TOML: a key of more than 100 parts (at line 1)", ""),
    "work = { " + r'"\".".' * 100 + "b = 1 }": ("a key of more than 100 parts (at line 1)", ""),
    "x." + "a." * 98 + "b = 1": ("unknown key 'x'", ""),
    "days = 1.00000000000000000001": ("not TOML: 1.00000000000000000001 has too many digits", ""),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    message, hint = REFUSED[text]
    with pytest.raises(Invalid) as refused:
        workload(text, "" if text.startswith(("work", "x =", "source =")) else WORK)
    assert refused.value.message.startswith("w.toml: ")
    assert message in refused.value.message
    assert hint in refused.value.hint
    assert (refused.value.exit_code, refused.value.error_code) == (2, "invalid_workload")


def test_steps_with_many_tasks_are_compared_at_once():
    """A step for each thousand tasks, and the two that clash are the last."""
    many = [{"name": f"s{number}", "count": 1000} for number in range(98)]
    steps = [*many, {"name": "z", "count": 2}, {"name": "z-2"}]
    source = {"at": ["0s"], "steps": steps}
    with pytest.raises(Invalid, match=r"source\[0\]: two tasks would be called z-2"):
        parse_workload({"source": [source]})
    source["steps"] = [*many, {"name": "z", "count": 2}, {"name": "z-02"}]
    parse_workload({"source": [source], "work": {"default": {"duration": "1m"}}})


@pytest.mark.parametrize("number", [10**4000, -(10**40)])
def test_a_huge_number_is_refused(number):
    with pytest.raises(Invalid, match=r"source\[0\].per_hour: not a number"):
        parse_workload({"source": [{"per_hour": number}]})


def test_work_for_every_kind_is_needed():
    with pytest.raises(Invalid, match=r"source s1: no work is called 'plan'") as refused:
        workload("[[source]]\nat = ['0s']\nkind = 'plan'\n[work.code]\nduration = '1m'", "")
    assert refused.value.hint == "Write a table [work.plan], or [work.default] for every kind."


def test_too_many_shifts():
    days = ", ".join(f"{{ from = '{hour:02}:00', until = '{hour:02}:30' }}" for hour in range(24))
    workers = "".join(f"[[worker]]\nname = 'w{n}'\nhours = [{days}]\n" for n in range(10))
    with pytest.raises(Invalid, match=r"1,753,940 shifts of workers are too many"):
        workload(f"days = 3650\n{workers}")


def test_files(tmp_path):
    path = tmp_path / "a.toml"
    with pytest.raises(Invalid, match="there is no such file"):
        load_workload(path)
    path.write_bytes(b"title = '\xff'")
    with pytest.raises(Invalid, match="not UTF-8 text"):
        load_workload(path)
    path.write_bytes(b"#" * 5_000_000)
    with pytest.raises(Invalid, match="cannot be read: it has more than 4,000,000 bytes"):
        load_workload(path)
    path.write_text("x = " + "[" * 100_000)
    with pytest.raises(Invalid, match="not TOML"):
        load_workload(path)
    path.write_text(f"title = 'A day'\ndays = 1\n{WORK}")
    assert load_workload(path).title == "A day"


def test_json_says_the_same_as_toml():
    """The operation takes a workload as JSON: every value survives the way there."""
    text = f"""
        begin = 2026-01-05T00:00:00Z
        days = 3
        [projects.web]
        budgets = [{{ usd = 0.1, window = "1h" }}]
        [[source]]
        project = "web"
        per_hour = 0.333333
        hours = {{ from = 09:00:00, until = "17:00" }}
        {WORK}
    """
    table = read_text(text.encode(), "w")
    again = json.loads(json.dumps(table))
    assert parse_workload(again) == parse_workload(table)
    assert list(parse_workload(again).arrivals(1)) == list(parse_workload(table).arrivals(1))
