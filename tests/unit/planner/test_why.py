"""Why: every hold, the place, and the smallest changes that would start it."""

from __future__ import annotations

import pytest

from fairlane.model.errors import NotFound
from fairlane.model.instant import MINUTE, SECOND
from fairlane.model.project import Pool, Project, Usage
from fairlane.model.task import Status, Task
from tests.unit.planner.scene import NOW, asked, changes, pause, policy, queued, running

AT = "2026-01-30T12:01:00Z"


def test_what_starts_now_has_no_holds():
    answer = asked("b", [queued("a"), queued("b", priority=1)])
    assert (answer.verdict, answer.holds, answer.position) == ("starts now", (), 1)


@pytest.mark.parametrize(
    ("task", "verdict"),
    [
        (running("t", worker="box"), "running on box"),
        (Task("t", status=Status.PARKED), "parked; only `retry` puts it back"),
        (Task("t", status=Status.DONE), "done"),
    ],
)
def test_what_is_not_queued_says_what_it_is(task, verdict):
    assert asked("t", [task]).verdict == verdict


def test_an_unknown_task_is_named():
    with pytest.raises(NotFound, match="there is no task 'x'"):
        asked("x", [])


def test_all_holds_in_the_order_of_the_gates():
    tasks = [
        running("r", locks=("x",), pool="p", workspace="w", project="web"),
        queued("t", locks=("x",), pool="p", workspace="w", project="web", labels=("gpu",)),
    ]
    answer = asked(
        "t", tasks, policy(caps__all=1, budget=[{"scope": "pool:p", "tokens": 0}]),
        paused=[pause("kind:code")], pools=[Pool("p", NOW + MINUTE, 1)],
    )  # fmt: skip
    codes = [hold.code for hold in answer.holds]
    assert codes == ["paused", "cooldown", "budget", "cap", "lock", "workspace", "no_label"]
    assert answer.verdict.startswith("held: kind code is paused")


def test_the_place_is_among_the_ready_tasks_of_the_project():
    tasks = [queued(f"t{n:02}", age=60 - n) for n in range(14)]
    tasks += [queued("other", project="web"), queued("later", not_before=NOW + 1)]
    answer = asked("t12", tasks, policy(caps__all=1))
    assert answer.position == 13
    assert answer.ahead == tuple(f"t{n:02}" for n in range(10))
    assert asked("later", tasks).position is None


def test_score_and_share_are_shown():
    tasks = [running("r"), queued("t", age=3)]
    document = asked("t", tasks, policy(caps__all=1)).document()
    assert document["score"] == {"total": 103, "kind": 100, "age": 3, "depth": 0, "retries": 0}
    share = document["share"] or {}
    assert (share["project"], share["mode"]) == ("default", "virtual-time")
    assert document["starts"] is None


def test_wait_until_a_time():
    assert changes("t", [queued("t", not_before=NOW + MINUTE)]) == [{"at": AT}]
    assert changes("t", [queued("t", pool="p")], pools=[Pool("p", NOW + MINUTE, 1)]) == [{"at": AT}]
    rules = policy(budget=[{"scope": "all", "tokens": 10}])
    usage = [Usage("all", tokens=10, leaves=((NOW + MINUTE, 5, 0),))]
    assert changes("t", [queued("t")], rules, usage=usage)[0] == {"at": AT}


def test_a_task_ends():
    tasks = [running("r", locks=("x",)), queued("t", locks=("x",))]
    assert changes("t", tasks) == [{"end": "r"}]
    assert changes("t", [running("r"), queued("t", needs=("r",))]) == [{"end": "r"}]


def test_the_end_of_a_probe_proves_its_pool():
    tasks = [running("r", pool="p", started_at=NOW - SECOND)]
    tasks += [queued(f"t{n}", pool="p") for n in range(3)]
    found = changes("t2", tasks, pools=[Pool("p", NOW - MINUTE, 1)])
    assert {"end": "r"} in found


def test_a_pause_is_lifted():
    assert changes("t", [queued("t")], paused=[pause("all")]) == [{"resume": "all"}]
    assert changes("t", [queued("t", paused=True)]) == [{"resume": "task:t"}]
    project = Project("web", status="paused")
    tasks = [queued("t", project="web")]
    assert changes("t", tasks, projects=[project]) == [{"resume": "project:web"}]


def test_a_cap_is_raised_just_as_far_as_it_takes():
    tasks = [running("r"), *(queued(f"t{n}") for n in range(5))]
    found = changes("t3", tasks, policy(caps__all=1))
    assert found == [{"policy": {"caps.all": 5}}]
    one = changes("t0", tasks, policy(caps__all=1))
    assert one == [{"end": "r"}, {"policy": {"caps.all": 2}}]


def test_a_batch_is_raised():
    found = changes("t1", [queued("t0"), queued("t1")], policy(capacity__batch=1))
    assert {"policy": {"capacity.batch": 2}} in found


def test_a_budget_is_raised():
    rules = policy(budget=[{"scope": "all", "tokens": 10, "window": "24h"}])
    found = changes("t", [queued("t")], rules, usage=[Usage("all", tokens=10)])
    assert [list(each) for each in found] == [["policy"]]
    assert found[0]["policy"]["budget"][0]["tokens"] > 10


def test_changes_come_in_this_order_time_end_pause_cap_budget():
    tasks = [running("r", pool="p", started_at=NOW), queued("t", pool="p")]
    rules = policy(**{"caps__pool:p": 1})
    assert changes("t", tasks, rules) == [{"end": "r"}, {"policy": {'caps."pool:p"': 2}}]
    probe = changes("t", tasks, pools=[Pool("p", NOW - MINUTE, 1)])
    assert probe == [{"at": "2026-01-30T12:01:00Z"}, {"end": "r"}]


def test_where_no_single_change_is_enough_there_is_a_pair():
    tasks = [running("r", locks=("x",)), queued("t", locks=("x",))]
    found = changes("t", tasks, paused=[pause("kind:code")])
    assert found == [{"end": "r", "resume": "kind:code"}]
    both = changes("t", [queued("t")], paused=[pause("kind:code"), pause("project:default")])
    assert both == [{"resume": ["kind:code", "project:default"]}]


def test_a_pair_may_need_more_than_one_step_and_many_holders_do_not_hide_it():
    tasks = [*(running(f"r{n}") for n in range(30)), *(queued(f"t{n}") for n in range(4))]
    found = changes("t3", tasks, policy(caps__all=30), paused=[pause("kind:code")])
    assert found == [{"resume": "kind:code", "policy": {"caps.all": 34}}]


def test_two_budgets_are_raised_together():
    rows = [{"scope": scope, "tokens": 10} for scope in ("all", "project:default")]
    usage = [Usage("all", tokens=10), Usage("project:default", tokens=10)]
    found = changes("t", [queued("t")], policy(budget=rows), usage=usage)
    assert len(found) == 1
    assert all(row["tokens"] > 10 for row in found[0]["policy"]["budget"])


def test_nothing_is_proposed_that_would_not_help():
    assert changes("t", [queued("t", labels=("gpu",))]) == []


def test_a_file_that_is_missing_is_proposed_alone_and_with_the_parent():
    assert changes("t", [queued("t", artifacts_missing=("a",))]) == [{"exist": ["a"]}]
    assert changes("t", [queued("t", artifacts_missing=("a", "b"))]) == [{"exist": ["a", "b"]}]
    rows = [queued("p"), queued("t", parent="p", artifacts_missing=("a",))]
    assert changes("t", rows) == [{"end": "p", "exist": ["a"]}]
    (change,) = asked("t", rows).would_start_if
    assert change.sentence == "p is done, and a exists"
