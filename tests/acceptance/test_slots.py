"""How many attempts this machine runs at once: by the settings, else by cap `all`, else four."""

from __future__ import annotations

import pytest


def settings(home, text):
    home.folder.mkdir(exist_ok=True)
    (home.folder / "fairlane.toml").write_text(text)


@pytest.mark.parametrize(
    ("preset", "text", "starts", "code"),
    [
        ("depth-first", "", 50, "cap"),
        ("depth-first", "worker.slots = 4", 4, "no_slot"),
        ("fair-share", "", 4, "no_slot"),
        ("fair-share", "worker.slots = 6", 6, "no_slot"),
        ("balanced", "worker.slots = 9", 4, "cap"),
    ],
)
def test_without_a_live_worker_a_plan_promises_what_would_start(
    home, tmp_path, preset, text, starts, code
):
    settings(home, text)
    home.policy(preset, *(["caps.project:*=none"] if preset == "fair-share" else []))
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(f'{{"id": "t{number}", "prompt": "x"}}\n' for number in range(60)))
    home.ask("add", "--file", file)
    plan = home.ask("plan")
    assert len(plan["picks"]) == plan["capacity"]["free"] == starts
    assert plan["reason"] == "capacity"
    assert home.ask("status")["capacity"]["free"] == starts
    assert home.hold("t59") == code


def test_a_task_that_asks_for_a_label_of_this_machine_is_promised(home):
    settings(home, 'worker.labels = ["gpu"]')
    home.add("--id", "a", "--label", "gpu")
    home.add("--id", "b", "--label", "tpu")
    assert (home.picks(), home.hold("b")) == (["a"], "no_label")


def test_why_proposes_a_raised_cap_where_the_cap_gives_the_slots(home):
    home.policy("balanced", "caps.all=1")
    home.add("--id", "a")
    home.add("--id", "b")
    proposed = [each["apply"] for each in home.ask("why", "b")["would_start_if"]]
    assert {"policy": {"caps.all": 2}} in proposed
