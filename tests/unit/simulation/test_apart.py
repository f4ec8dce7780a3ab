"""Simulations in processes of their own: in order, the same as here, and ended when told so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fairlane.model.errors import FairlaneError, Invalid, Refused, TryLater
from fairlane.policy.policy import Policy
from fairlane.simulation import apart, report
from fairlane.simulation.apart import Apart, packed, unpacked
from fairlane.simulation.engine import flights
from fairlane.simulation.simulate import Order, orders_of, run_all, run_here
from tests.unit.simulation.told.runs import two_projects
from tests.waiting import LIMIT_SECONDS, until

WORKLOAD = {
    "title": "small",
    "days": 1,
    "work": {"default": {"duration": {"median": "20m", "p90": "1h"}, "tokens": 1000}},
    "source": [{"per_hour": 4}, {"name": "b", "every": "30m"}],
}
NAMELESS = {key: value for key, value in WORKLOAD.items() if key != "title"}
#: So much work that it would take minutes.
LONG = {**WORKLOAD, "days": 1000}


def balanced():
    return Policy.preset("balanced")


def orders(*policies, **values):
    return orders_of(balanced, WORKLOAD | values, policies or None)


def test_a_run_survives_its_way_between_processes():
    run = two_projects(
        overshoot={"all": 3}, late={"web": 5}, refused=2, undone=((5, "edit", "no"),)
    )
    assert unpacked(json.loads(json.dumps(packed(run)))) == run


def test_each_order_names_its_policy_and_the_workload():
    made = orders("fair-share", {"policy": {"caps.all": 2}}, {"name": "mine", "policy": {}})
    assert [(each.name, each.title) for each in made] == [
        ("fair-share", "small"), ("policy", "small"), ("mine", "small"),
    ]  # fmt: skip
    assert Policy.parse(made[1].policy).caps == {"all": 2}
    (alone,) = orders_of(lambda: Policy.preset("fail-closed"), NAMELESS, name="f")
    assert (alone.name, alone.title) == ("in force", "f")
    assert Policy.parse(alone.policy) == Policy.preset("fail-closed")


@pytest.mark.parametrize(
    ("workload", "policies", "message"),
    [
        ({"dayz": 1}, None, "w.toml: unknown key 'dayz'"),
        (WORKLOAD, ["balancd"], "balancd"),
        (WORKLOAD, [{"name": "p", "policy": {"caps.al": 1}}], "p: unknown key caps.al"),
        (WORKLOAD, [{"policy": 3}], "policies: not a policy"),
        (WORKLOAD, [], "policies: 0 entries"),
        (WORKLOAD, ["balanced"] * 21, "policies: 21 entries"),
    ],
)
def test_what_cannot_be_simulated_is_refused_before_anything_runs(workload, policies, message):
    with pytest.raises(Invalid) as refused:
        orders_of(balanced, workload, policies, name="w.toml")
    assert message in refused.value.message


def test_days_of_the_call_replace_those_of_the_workload():
    endless = {key: value for key, value in WORKLOAD.items() if key != "days"}
    (order,) = orders_of(balanced, endless, days=2)
    run = run_here(order)
    assert run.end - run.begin == 2 * 86_400_000_000


@pytest.mark.slow
def test_several_are_made_apart_in_their_order_and_are_the_same():
    made = orders("serial-lanes", "balanced", "fair-share")
    runs = run_all(made)
    assert report.together(Apart().answers(made)) == report.answer("small", runs)
    assert [run.policy for run in runs] == ["serial-lanes", "balanced", "fair-share"]
    assert runs == [run_here(order) for order in made]
    assert runs[0] != runs[1]


def test_an_error_over_there_is_an_error_here():
    bad = Order({"days": 0}, "w", {}, "p", 1)
    with pytest.raises(Invalid, match="w: days: "):
        Apart().run([bad, bad])


def test_attempts_without_end_are_refused(monkeypatch):
    monkeypatch.setattr(flights, "ATTEMPTS_MAX", 20)
    (order,) = orders(work={"default": {"duration": "1m", "throttled": 1, "retry_after": "0s"}})
    with pytest.raises(Invalid, match="more than 20 attempts") as refused:
        run_here(order)
    assert refused.value.hint == "Simulate fewer days or tasks, or let fewer attempts fail."


def test_a_server_waits_for_no_simulation_for_ever(monkeypatch):
    program = "from fairlane.simulation import child; child.CPU_SECONDS = 1; child.main()"
    monkeypatch.setattr(apart, "_CHILD", (sys.executable, "-P", "-c", program))
    with pytest.raises(Refused, match="the simulation took more than 1 s of a processor"):
        Apart().answers(orders_of(balanced, LONG))


def test_a_process_that_dies_is_named(monkeypatch):
    monkeypatch.setattr(apart, "_CHILD", ("sh", "-c", "exit 7"))
    with pytest.raises(FairlaneError) as died:
        Apart().run(orders())
    assert died.value.message == "the simulation of 'in force' ended with exit code 7"


def test_what_is_ended_stops_at_once_and_begins_nothing_more(monkeypatch):
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def remembered(*words, **options):
        started.append(popen(*words, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", remembered)
    several = Apart()
    found: list[BaseException] = []

    def ask() -> None:
        try:
            several.run(orders_of(balanced, LONG, ["balanced"] * 5))
        except TryLater as error:
            found.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: len(started) == min(5, len(os.sched_getaffinity(0))))
    several.end()
    asking.join()
    assert [str(error) for error in found] == ["the simulation was stopped"]
    assert {child.returncode for child in started} == {-signal.SIGKILL}
    assert len(started) < 5 or len(os.sched_getaffinity(0)) >= 5


def test_a_child_ends_with_whoever_asked_it():
    """The end of its input is the death of the process that made it."""
    order = Order(LONG, "w", Policy.preset("balanced").document(), "p", 1)
    root = Path(apart.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    pipe = subprocess.PIPE
    command = (*apart._CHILD, "run")
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as child:
        said = child.communicate(json.dumps(order).encode() + b"\n", LIMIT_SECONDS)
    assert (child.returncode, said) == (1, (b"", b""))
