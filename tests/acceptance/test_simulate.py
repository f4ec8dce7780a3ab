"""`fairlane simulate`: what people read, what programs read, and what is refused."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection
from select import select
from xml.etree import ElementTree as ET

import pytest

from fairlane.app.verbs import Fairlane
from fairlane.client.remote import Remote
from fairlane.model.errors import TryLater
from fairlane.policy.policy import Policy
from fairlane.service.home.setup import home_token
from fairlane.service.operations.schemas import DOCUMENTS
from fairlane.simulation.engine import simulate
from fairlane.simulation.worlds.trace import load_trace
from fairlane.simulation.worlds.workload import load_workload
from tests.acceptance.commands import fairlane
from tests.acceptance.queue_home import Home
from tests.afar.served import serving
from tests.waiting import LIMIT_SECONDS, until

jsonschema = pytest.importorskip("jsonschema")

WORKLOAD = """\
title = "Two projects"
days = 1

[work.code]
duration = { median = "20m", p90 = "1h" }
tokens = { input = { median = 30000, p90 = 90000 }, output = 4000 }
usd_per_million = { input = 3, output = 15 }
failed = 0.1

[projects.web]
weight = 3

[projects.api]

[[source]]
name = "web"
project = "web"
per_hour = 8
until = "8h"

[[source]]
name = "api"
project = "api"
per_hour = 2
"""


@pytest.fixture
def workload(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(WORKLOAD)
    return file


def test_one_policy_has_its_projects_and_what_held_its_tasks(home, workload):
    said = home.run("simulate", workload, "--policy", "balanced")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("Two projects: ")
    assert lines[0].endswith(" tasks in 24 h, seed 1")
    assert lines[2].split() == ["policy", "done", "wait", "p50", "p90", "longest", "busy", "cost",
                                "held", "by"]  # fmt: skip
    assert lines[3].split()[0] == "balanced"
    assert [line.split()[0] for line in lines[6:9]] == ["project", "api", "web"]
    rest = " ".join(lines[9:])
    assert "Held, over all tasks: cap " in rest
    assert "tokens/weight (bound " in rest


def test_several_policies_have_a_row_each_and_what_differs_within_80_columns(
    home, workload, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    names = ["balanced", "batch-dispatch", "fair-share", "serial-lanes"]
    said = home.run("simulate", workload, *(word for name in names for word in ("--policy", name)))
    lines = said.out.splitlines()
    assert [line.split()[0] for line in lines[3:7]] == names
    assert max(map(len, lines)) <= 80
    assert "Wait p90 by project:" in lines
    assert any(line.startswith("  Tasks done: ") for line in lines[lines.index("What differs:") :])


def test_the_document_is_that_of_its_schema(home, workload):
    words = ("simulate", workload, "--policy", "fail-closed", "--policy", "balanced", "--seed", 7)
    document = home.ask(*words)
    jsonschema.validate(document, DOCUMENTS["Simulate"])
    assert (document["workload"], document["seed"], document["days"]) == ("Two projects", 7, 1.0)
    assert [row["name"] for row in document["policies"]] == ["fail-closed", "balanced"]
    slow, fast = document["policies"]
    assert slow["waits"]["p90"] > fast["waits"]["p90"]
    assert home.ask(*words) == document


def test_the_default_is_the_policy_in_force_and_nothing_is_made(home, workload):
    document = home.ask("simulate", workload)
    assert [row["name"] for row in document["policies"]] == ["in force"]
    assert not home.folder.exists()
    home.policy("balanced", "caps.all=1")
    narrow = home.ask("simulate", workload)["policies"][0]
    assert narrow["done"] < document["policies"][0]["done"]


def test_a_policy_may_be_a_file(home, workload, tmp_path):
    (tmp_path / "mine.toml").write_text('preset = "fail-closed"\n')
    mine, shipped = home.ask(
        "simulate", workload, "--policy", tmp_path / "mine.toml", "--policy", "fail-closed"
    )["policies"]
    assert (mine.pop("name"), shipped.pop("name")) == ("mine", "fail-closed")
    assert mine == shipped


def test_policies_that_would_have_the_same_name_are_named_by_their_files(home, workload, tmp_path):
    files = [tmp_path / folder / "balanced.toml" for folder in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        file.write_text('preset = "fail-closed"\n')
    given = [*files, "balanced", "fair-share"]
    rows = home.ask("simulate", workload, *(word for each in given for word in ("--policy", each)))
    assert [row["name"] for row in rows["policies"]] == [str(each) for each in given]


def test_days_and_seed_change_what_comes(home, workload):
    def done(*words):
        return home.ask("simulate", workload, "--policy", "balanced", *words)["policies"][0]

    assert done("--days", "2")["tasks"] > done()["tasks"]
    assert done("--seed", "2") != done()


def test_the_library_simulates_under_the_policy_in_force(tmp_path):
    (tmp_path / "policy.toml").write_text("caps.all = 1\n")
    table = {"work": {"default": {"duration": "10m"}}, "source": [{"at": ["1m"], "count": 3}]}
    with Fairlane(tmp_path) as queue:
        (row,) = queue.simulate(table, name="three")["policies"]
        assert queue.list()["tasks"] == []
    assert (row["name"], row["done"], row["waits"]["max"]) == ("in force", 3, 1200.0)


def test_it_is_drawn(home, workload, tmp_path):
    picture = tmp_path / "two.svg"
    words = ("simulate", workload, "--policy", "balanced", "--plot", picture)
    said = home.run(*words)
    assert said.out.endswith(f"\n\ndrawn: {picture}\n")
    first = picture.read_bytes()
    root = ET.fromstring(first)
    title = root.findtext("{http://www.w3.org/2000/svg}title")
    assert str(title).startswith("Two projects: ")
    home.run(*words)
    assert picture.read_bytes() == first


def test_a_png_leaves_the_svg_of_the_same_name_as_it_is(home, workload, tmp_path, monkeypatch):
    """By a program that stands in for a converter."""
    converter = tmp_path / "bin" / "rsvg-convert"
    converter.parent.mkdir()
    converter.write_text('#!/bin/sh\ncp "$1" "$3"\n')
    converter.chmod(0o755)
    monkeypatch.setenv("PATH", f"{converter.parent}:/usr/bin:/bin")
    (tmp_path / "two.svg").write_text("mine")
    home.run("simulate", workload, "--policy", "balanced", "--plot", tmp_path / "two.png")
    assert (tmp_path / "two.png").read_text().startswith("<svg ")
    assert (tmp_path / "two.svg").read_text() == "mine"


def test_a_png_that_nothing_here_can_make_is_refused_before_it_runs(
    home, workload, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("fairlane.simulation.simulate.run_all", pytest.fail)
    said = home.error("simulate", workload, "--plot", tmp_path / "two.png", code=2)
    assert said["message"] == "--plot: there is no program here that makes PNG out of SVG"


def test_its_trace_repeats_it(home, workload, tmp_path):
    trace = tmp_path / "two.jsonl"
    said = home.run("simulate", workload, "--policy", "balanced", "--trace-out", trace)
    assert said.out.endswith(f"\n\ntrace: {trace}\n")
    policy = Policy.preset("balanced")
    first, again = (
        [(row.task, row.number, row.leased_at) for row in simulate(world, policy).attempts]
        for world in (load_workload(workload), load_trace(trace))
    )
    assert first == again != []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere.toml"], 2, "nowhere.toml: there is no such file"),
        (["FILE", "--policy", "balancd"], 2, "unknown preset 'balancd'"),
        (["FILE", "--policy", "gone.toml"], 2, "gone.toml: there is no such file"),
        (["FILE", "--plot", "x.gif"], 2, "--plot: x.gif is neither .svg nor .png"),
        (["FILE", "--plot", "nowhere/x.svg"], 2, "--plot: nowhere/x.svg: there is no"),
        (["FILE", "--trace-out", "t", "--policy", "balanced", "--policy", "fair-share"], 2,
         "--trace-out: a trace is of one policy"),
        (["FILE", "--trace-out", "nowhere/t"], 2, "--trace-out: nowhere/t: there is no"),
        (["FILE", "--trace-out", "."], 2, "--trace-out: .: it is a folder"),
        (["FILE", "--trace-out", "/dev/full"], 2, "--trace-out: /dev/full: No space left"),
        (["FILE", "--days", "0"], 2, "Invalid value for '--days'"),
    ],
)  # fmt: skip
def test_mistakes_are_named(home, workload, words, code, message):
    asked = [workload if word == "FILE" else word for word in words]
    assert message in home.error("simulate", *asked, code=code)["message"]


def test_a_trace_does_not_replace_what_it_is_of(home, workload, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(workload)
    for target in (workload, link):
        said = home.error("simulate", workload, "--trace-out", target, code=2)
        assert said["message"] == f"--trace-out: {target} is what is simulated"
    assert workload.read_text() == WORKLOAD


def test_a_mistake_in_the_file_is_named_with_the_file(home, workload):
    workload.write_text(WORKLOAD + "hourz = 3\n")
    error = home.error("simulate", workload, code=2)
    assert error["message"] == f"{workload}: unknown key 'source[1].hourz'"
    assert "hours" in error["hint"]


def test_an_attempt_may_not_simulate(home, workload, monkeypatch):
    monkeypatch.setenv("FAIRLANE_LEASE", "L1")
    assert home.error("simulate", workload)["code"] == "inside_attempt"


@pytest.mark.slow
def test_the_same_bytes_in_every_process(workload, tmp_path):
    words = ("--json", "simulate", workload, "--policy", "balanced", "--policy", "fair-share",
             "--home", tmp_path)  # fmt: skip
    one, two = (fairlane(*words, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert one.code == 0
    assert one == two


@pytest.mark.slow
def test_a_server_gives_the_same_document(tmp_path, workload, capsys):
    pytest.importorskip("uvicorn")
    home = Home(tmp_path / "home", capsys)
    home.policy("balanced", "caps.all=2")
    with serving(home.folder) as url:
        here = home.ask("simulate", workload)
        environment = {"FAIRLANE_HOME": str(home.folder)}
        there = fairlane("--json", "--url", url, "simulate", workload, **environment)
        assert (there.code, json.loads(there.out)) == (0, here)
        refused = fairlane("--url", url, "simulate", workload, "--plot", "x.svg", **environment)
        assert (refused.code, "--plot and --trace-out: not over a URL" in refused.err) == (2, True)
        with closing(Remote(url, home_token(home.folder))) as remote:
            rules = [{"name": "in force", "policy": {"caps.all": 2}}]
            table = {"work": {"default": {"duration": "1m"}}, "source": [{"at": ["1m"]}]}
            answer = remote.ask("simulate", workload=table, policies=rules)
    assert answer["policies"][0]["done"] == 1


@pytest.mark.slow
def test_one_at_a_time_and_it_ends_when_the_caller_hangs_up(tmp_path):
    """Of two simulations that would take an hour one is refused; the other one is given up."""
    pytest.importorskip("uvicorn")
    short = {"work": {"default": {"duration": "1m"}}, "source": [{"at": ["1m"]}]}
    body = json.dumps({"workload": short | {"source": [{"every": "1m"}], "days": 600}})
    headers = {"Content-Type": "application/json"}
    with serving(tmp_path) as url, closing(Remote(url, home_token(tmp_path))) as remote:
        headers["Authorization"] = f"Bearer {home_token(tmp_path)}"
        callers = [HTTPConnection(url.removeprefix("http://")) for _ in range(2)]
        for caller in callers:
            caller.request("POST", "/api/v1/simulate", body, headers)
        by_socket = {caller.sock: caller for caller in callers}
        (answered,), _, _ = select(list(by_socket), [], [], LIMIT_SECONDS)
        refused = by_socket.pop(answered).getresponse()
        assert (refused.status, json.load(refused)["error"]["code"]) == (429, "busy")
        with pytest.raises(TryLater, match="another simulation is under way"):
            remote.ask("simulate", workload=short)
        for caller in callers:
            caller.close()

        def is_free():
            try:
                return remote.ask("simulate", workload=short)
            except TryLater:
                return None

        assert until(is_free)["policies"][0]["done"] == 1
