"""A loopr home that is moved over goes on as loopr would."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.model.errors import Invalid
from fairlane.service import planning, policies, tasks
from fairlane.service.conversion import operation
from fairlane.service.conversion.formats.loopr import folder as loopr_folder
from fairlane.service.reports import listing
from tests.acceptance.commands import EXAMPLES, fairlane
from tests.moving import loopr
from tests.unit.contexts import TestContext, hold_code

pytestmark = pytest.mark.slow


def written(folder: Path, *rows: object) -> Path:
    """A file of loops."""
    file = folder / "loops.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def moved(tmp_path, path):
    """A new home with what the files hold, and the answer."""
    home = TestContext(tmp_path / "home")
    home.context.home.mkdir(parents=True)
    return home, operation.write(home.context, "loopr", str(path))


def found(home, name):
    with home.context.store.read() as reading:
        return reading.tasks([name])[name]


def skipped(document):
    return {row["id"]: (row["where"], row["reason"]) for row in document["skipped"]}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), events=st.integers(0, 10**6))
def test_it_runs_what_loopr_would_run(tmp_path_factory, seed, events):
    folder = tmp_path_factory.mktemp("loopr")
    other = loopr.made(folder / "there", seed)
    home, answer = moved(folder, other.folder)
    home.policy(f'{answer["policy"]}lease.ttl = "24h"\n')
    gone = loopr.orphans(other)
    assert {row["id"] for row in answer["skipped"]} == gone | ({"?"} if other.broken else set())
    for name in gone:
        del other.loops[name]
    running: dict[str, str] = {}
    random = Random(events)
    for _ in range(6):
        plan = planning.plan(home.context)
        picks = [pick["task"] for pick in plan["picks"]]
        now_ms = home.context.now() // 1000
        flying = [other.loops[name] for name in running]
        assert picks == loopr.select(other, now_ms, flying)
        for pick in plan["picks"]:
            assert pick["score"] == loopr.priority(other, other.loops[pick["task"]], now_ms)
        started = {row["task"]: row["lease"] for row in home.lease()}
        assert started.keys() == set(picks)
        for name in started:
            other.loops[name]["status"] = "running"
        running |= started
        for name in random.sample(sorted(running), min(len(running), 2)):
            home.finish(running.pop(name))
            other.loops[name]["status"] = "complete"
        for loop in other.loops.values():
            if "input_artifact" in loop and random.random() < 0.2:
                path = other.folder / loop["input_artifact"]
                path.parent.mkdir(exist_ok=True)
                path.write_text("now")
        home.wait(random.randrange(1, 20) * 60_000_000)


def test_the_prompt_is_what_loopr_gives_the_model(tmp_path):
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "code.md").write_text("Implement {{ task }} in {{lang}} ({{who}}).\r\n")
    (tmp_path / "loops" / "own").mkdir(parents=True)
    (tmp_path / "loops" / "own" / "code.md").write_text("My own.")
    row: dict[str, object] = {
        "id": "a",
        "prompt_path": "prompts/code.md",
        "validation_command": "cargo test",
    }
    row |= {"context": {"task": "sign in\nand out", "lang": "Rust"}, "progress": "\n1 failed\n"}
    row |= {"input_artifact": "plan.md", "output_artifacts": ["out/code.md"]}
    own = {"id": "own", "prompt_path": "code.md", "description": "With this."}
    titled = {"id": "t", "title": "Fix the build"}
    file = written(tmp_path, row, own, titled, {"id": "done", "status": "complete"})
    home, answer = moved(tmp_path, file)
    assert answer["skipped"] == []
    task = found(home, "a")
    assert task.prompt == (
        "Implement sign in\nand out in Rust ({{who}}).\n\n"
        f"Your input is {tmp_path}/plan.md.\n\n"
        f"Write your result to {tmp_path}/out/code.md.\n\n"
        "You are done when this command succeeds: cargo test\n\n"
        "## Previous Attempts\n\n1 failed"
    )
    assert task.title == "sign in"
    assert found(home, "own").prompt == "My own.\n\nWith this."
    assert found(home, "t").prompt == "Fix the build"
    assert answer["unknown"] == [
        "loops.jsonl: validation_command (kept in meta)",
        "loops.jsonl: context.lang (kept in meta)",
    ]


def test_outputs_of_one_name_are_written_apart_and_each_child_waits_for_its_parents(tmp_path):
    plans = [{"id": name, "prompt": "x", "output_artifacts": ["plan.md"]} for name in "ab"]
    inputs = {"prompt": "x", "input_artifact": "plan.md"}
    specs = [{"id": f"spec-{name}", "parent_id": name, **inputs} for name in "ab"]
    over = {"id": "c", "prompt": "x", "status": "complete", "output_artifacts": ["plan.md"]}
    (tmp_path / "plan.md").write_text("of c")
    last = {"id": "spec-c", "parent_id": "c", **inputs}
    home, _ = moved(tmp_path, written(tmp_path, *plans, *specs, over, last))
    for name in "ab":
        path = str(tmp_path / "loops" / name / "plan.md")
        assert found(home, name).prompt == f"x\n\nWrite your result to {path}."
        assert found(home, f"spec-{name}").artifacts == (path,)
    assert found(home, "spec-c").artifacts == (str(tmp_path / "plan.md"),)


def test_ids_that_cannot_be_names_get_names(tmp_path):
    (tmp_path / "loops" / "größe 1").mkdir(parents=True)
    (tmp_path / "loops" / "größe 1" / "spec.md").write_text("x")
    rows: list[dict[str, object]] = [
        {"id": "größe 1", "status": "complete"},
        {"id": "kind/2", "parent_id": "größe 1", "prompt": "x", "input_artifact": "spec.md"},
        {"prompt": "no id"},
        {"id": "grosse-1", "prompt": "x"},
        {"id": "odd", "parent_id": ["odd"], "prompt": "x"},
    ]
    home, answer = moved(tmp_path, written(tmp_path, *rows))
    child = found(home, "kind-2")
    first = found(home, child.parent).id
    assert first.startswith("grosse-1-")
    assert child.artifacts == (str(tmp_path / "loops" / "größe 1" / "spec.md"),)
    assert not child.artifacts_missing
    assert f"größe 1 is {first}, kind/2 is kind-2." in answer["notes"][0]
    assert skipped(answer)["?"] == ("loops.jsonl:3", "it has no id")


def test_a_loop_that_says_nothing_comes_in_and_is_named(tmp_path):
    """Bare records, as loopr's own document has them, are planned like any other."""
    _, answer = moved(tmp_path, written(tmp_path, {"id": "bare"}, {"id": "b", "prompt": "x"}))
    assert (answer["added"], skipped(answer)) == (2, {})
    (note,) = [note for note in answer["notes"] if "names no prompt" in note]
    assert "the name alone: bare. `fairlane edit ID --prompt-file FILE`" in note


def test_a_loop_without_its_prompt_is_left_out_and_comes_in_once_it_is_there(tmp_path):
    rows = [
        {"id": "away", "prompt_path": "prompts/code.md"},
        {"id": "child", "parent_id": "away", "prompt": "x"},
    ]
    file = written(tmp_path, *rows)
    home, answer = moved(tmp_path, file)
    assert (answer["tasks"], answer["added"]) == (0, 0)
    assert skipped(answer) == {
        "away": (
            "loops.jsonl:1",
            f"prompt_path: there is no prompts/code.md in {tmp_path}",
        ),
        "child": ("loops.jsonl:2", "it waits for away, which is left out"),
    }
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "code.md").write_text("Now.")
    answer = operation.write(home.context, "loopr", str(file))
    assert (answer["added"], skipped(answer)) == (2, {})


def test_prompts_are_read_in_loopr_s_own_folders_alone(tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("a secret")
    home = tmp_path / ".loopr"
    store = home / "project" / loopr_folder.STORE
    store.mkdir(parents=True)
    (home / "prompts").mkdir()
    (home / "prompts" / "code.md").write_text("Shared.")
    (home / "project" / "link.md").symlink_to(secret)
    (home / "project" / "large.md").write_text("x" * (loopr_folder.PROMPT_BYTES_MAX + 1))
    (home / "project" / "bytes.md").write_bytes(b"\xff")
    names = ["prompts/code.md", str(home / "prompts" / "code.md"), str(secret), "link.md"]
    names += ["../../secret.md", "large.md", "bytes.md", "prompts", "a\nb"]
    rows = [{"id": f"l{at}", "prompt_path": name} for at, name in enumerate(names)]
    written(store, *rows)
    answer = operation.show("loopr", str(home / "project"))
    out = skipped(answer)
    assert answer["tasks"] == 2
    assert list(out) == [f"l{at}" for at in range(2, len(names))]
    assert all("lies outside of" in out[name][1] for name in ("l2", "l3", "l4"))
    assert "it has more than 200,000 bytes" in out["l5"][1]
    assert "not UTF-8" in out["l6"][1]


def test_an_artifact_is_waited_for_where_loopr_has_it(tmp_path):
    rows = [
        {"id": "top", "prompt": "x", "input_artifact": "brief.md"},
        {"id": "done", "status": "complete"},
        {"id": "below", "parent_id": "done", "prompt": "x", "input_artifact": "out/plan.md"},
        {"id": "far", "parent_id": "done", "prompt": "x"}
        | {"input_artifact": str(tmp_path / "elsewhere" / "plan.md")},
    ]
    home, answer = moved(tmp_path, written(tmp_path, *rows))
    assert home.lease() == []
    names = ("top", "below", "far")
    holds: dict[str, Any] = {
        name: listing.show(home.context, name)["task"]["hold"] for name in names
    }
    assert {name: hold["code"] for name, hold in holds.items()} == dict.fromkeys(names, "artifact")
    assert f"{tmp_path}/brief.md" in holds["top"]["reason"]
    assert f"{tmp_path}/out/plan.md" in holds["below"]["reason"]
    (tmp_path / "home" / "artifacts" / "done" / "out").mkdir(parents=True)
    (tmp_path / "home" / "artifacts" / "done" / "out" / "plan.md").write_text("not there")
    assert home.lease() == []
    for name in ("brief.md", "out/plan.md", "elsewhere/plan.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
        assert len(home.lease()) == 1
    assert any("input_artifact" in note for note in answer["notes"])


def test_what_a_parent_left_in_loopr_is_an_input(tmp_path):
    left = tmp_path / "loops" / "done" / "iterations" / "002" / "artifacts"
    left.mkdir(parents=True)
    (left / "plan.md").write_text("x")
    (tmp_path / "loops" / "done" / "current").symlink_to("iterations/002")
    rows = [
        {"id": "done", "status": "complete"},
        {"id": "a", "parent_id": "done", "prompt": "x", "input_artifact": "plan.md"},
        {"id": "b", "parent_id": "done", "prompt": "x", "input_artifact": "other.md"},
    ]
    home, _ = moved(tmp_path, written(tmp_path, *rows))
    assert [lease["task"] for lease in home.lease()] == ["a"]
    assert f"{tmp_path}/loops/done/current/artifacts/plan.md" in found(home, "a").prompt
    assert found(home, "b").artifacts == (f"{tmp_path}/other.md",)


def test_fifty_loops_with_ten_calls_run_ten_and_the_note_says_how_to_change_that(tmp_path):
    written(tmp_path, *({"id": f"l{at}", "prompt": "x"} for at in range(60)))
    text = (EXAMPLES / "coming-from" / "loopr" / "loopr.yml").read_text()
    (tmp_path / "loopr.yml").write_text(text)
    home, answer = moved(tmp_path, tmp_path)
    assert len(planning.plan(home.context)["picks"]) == 10
    note = next(note for note in answer["notes"] if "max_api_calls" in note)
    assert note.startswith("At most 10 loops run at once although max_loops is 50, until calls")
    assert "`fairlane policy set caps.pool:anthropic=50`" in note
    policies.change(home.context, policies.changes(["caps.pool:anthropic=50"]))
    assert len(planning.plan(home.context)["picks"]) == 50


def test_nobody_else_can_name_an_absolute_artifact(tmp_path):
    home, _ = moved(tmp_path, written(tmp_path, {"id": "a", "prompt": "x", "input_artifact": "b"}))
    with pytest.raises(Invalid, match="leaves its folder"):
        home.add({"id": "probe", "parent": "a", "artifacts": ["/etc/passwd"]})
    with pytest.raises(Invalid, match="leaves its folder"):
        tasks.edit(home.context, ["a"], {"artifacts": ["/etc/passwd"]})
    tasks.edit(home.context, ["a"], {"prompt": "changed"})
    assert hold_code(listing.show(home.context, "a")["task"]) == "artifact"


def test_bad_loops_are_named_with_their_line_and_the_rest_comes_in(tmp_path):
    rows = [
        {"id": "good", "prompt": "x"},
        {"id": "zero", "prompt": "x", "max_iterations": 0},
        {"id": "orphan", "prompt": "x", "parent_id": "gone"},
        {"id": "x", "prompt": "x", "parent_id": "y"},
        {"id": "y", "prompt": "x", "parent_id": "x"},
        {"id": "z", "prompt": "x", "parent_id": "zero"},
        {"id": 7, "prompt": "x"},
        {"id": "asleep", "status": "asleep"},
        {"id": "minus", "prompt": "x", "iteration": -1},
        {"id": "when", "prompt": "x", "created_at": "now"},
        {"prompt": "x"},
        "[1]",
        '{"id": "half", "loop_type": "co',
    ]
    home, answer = moved(tmp_path, written(tmp_path, *rows))
    assert (answer["tasks"], answer["added"]) == (1, 1)
    expected = {
        "loops.jsonl:2": "max_iterations: 0 is out of range",
        "loops.jsonl:3": "the parent of orphan, 'gone', is not known",
        "loops.jsonl:4": "a cycle: x → y → x",
        "loops.jsonl:5": "a cycle: x → y → x",
        "loops.jsonl:6": "it waits for zero, which is left out",
        "loops.jsonl:7": "not a task name: 7",
        "loops.jsonl:8": "status: 'asleep' is none of pending",
        "loops.jsonl:9": "iteration: -1 is out of range",
        "loops.jsonl:10": "created_at: not a whole number: 'now'",
        "loops.jsonl:11": "it has no id",
        "loops.jsonl:12": "not a task: '[1]'",
        "loops.jsonl:13": "not JSON",
    }
    reasons = {row["where"]: row["reason"] for row in answer["skipped"]}
    assert reasons.keys() == expected.keys()
    for where, reason in expected.items():
        assert reasons[where].startswith(reason), where
    again = operation.write(home.context, "loopr", str(tmp_path / "loops.jsonl"))
    assert (again["changed"], len(again["skipped"])) == (False, 12)


def test_a_file_without_one_loop_is_refused(tmp_path):
    for text in ("{", "\0", "[]\n{"):
        (tmp_path / "loops.jsonl").write_text(text)
        with pytest.raises(Invalid, match=r"loops\.jsonl:1: not "):
            operation.show("loopr", str(tmp_path))


def test_the_newest_line_of_a_loop_counts(tmp_path):
    rows = [
        {"id": "a", "prompt": "new", "updated_at": 5},
        {"id": "a", "prompt": "old", "updated_at": 4},
        {"id": "b", "prompt": "x", "updated_at": 1},
        {"id": "b", "deleted": True, "updated_at": 2},
        {"id": "c", "status": "paused", "prompt": "x"},
    ]
    home, answer = moved(tmp_path, written(tmp_path, *rows))
    assert (answer["added"], answer["skipped"]) == (2, [])
    assert found(home, "a").prompt == "new"
    assert [lease["task"] for lease in home.lease()] == ["a"]
    assert hold_code(listing.show(home.context, "c")["task"]) == "paused"


def test_a_hundred_thousand_loops_with_thirty_thousand_orphans(tmp_path):
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "code.md").write_text("Do it.")
    orphan = {"prompt_path": "prompts/code.md", "parent_id": "gone"}
    child = {"prompt_path": "prompts/code.md"}
    rows = [{"id": f"o{at}"} | orphan for at in range(15_000)]
    rows += [{"id": f"c{at}", "parent_id": f"o{at}"} | child for at in range(15_000)]
    rows += [{"id": f"g{at}"} | child for at in range(70_000)]
    answer = operation.show("loopr", str(written(tmp_path, *rows)))
    assert (answer["tasks"], len(answer["skipped"])) == (70_000, 30_000)


def test_a_home_runs_to_its_end(tmp_path):
    folder = tmp_path / "there"
    (folder / "prompts").mkdir(parents=True)
    for kind in loopr.TYPES:
        (folder / "prompts" / f"{kind}.md").write_text(f"Do the {kind}: {{{{task}}}}")
    (folder / "loopr.yml").write_text("concurrency: {max_loops: 3, max_api_calls: 2}\n")
    base = {"created_at": 1, "updated_at": 2, "max_iterations": 3, "iteration": 0}
    rows = [
        base | {"id": f"{kind}-{at}", "loop_type": kind, "prompt_path": f"prompts/{kind}.md"}
        | {"parent_id": f"{above}-{at}" if above else None, "status": "pending"}
        | {"context": {"task": f"{kind} {at}"}}
        for at in range(2)
        for above, kind in zip((None, *loopr.TYPES), loopr.TYPES, strict=False)
    ]  # fmt: skip
    rows[-1]["input_artifact"] = "never.md"
    parents = {row["id"]: row["parent_id"] for row in rows}
    written(folder, *rows, '{"id": "half')
    (tmp_path / "home").mkdir()
    (tmp_path / "said").mkdir()
    agent = f"argv = ['sh', '-c', 'cat > {tmp_path}/said/$FAIRLANE_TASK']\npool = 'anthropic'\n"
    (tmp_path / "home" / "fairlane.toml").write_text(f"agent = 'quick'\n[agents.quick]\n{agent}")
    home = ("--home", tmp_path / "home")
    said = fairlane(*home, "convert", "loopr", folder, "--write")
    assert said.code == 0, said
    assert "added 8 of 8 tasks" in said.out
    assert "loops.jsonl:9: not JSON" in said.out
    assert fairlane(*home, "run", "--until-idle").code == 0
    listed = fairlane(*home, "--json", "list").document["tasks"]
    statuses = {row["id"]: row["status"] for row in listed}
    assert statuses == {row["id"]: "done" for row in rows} | {"code-1": "queued"}
    assert (tmp_path / "said" / "spec-0").read_text().strip() == "Do the spec: spec 0"
    events = fairlane(*home, "--json", "events", "--limit", "500").document["events"]
    flying = set()
    for event in events:
        if event["kind"] == "started":
            assert parents[event["task"]] not in flying
            flying.add(event["task"])
        flying -= {event["task"]} if event["kind"] == "succeeded" else set()
        assert len(flying) <= 2  # max_api_calls
    (folder / "never.md").write_text("now")
    assert fairlane(*home, "run", "--until-idle").code == 0
    assert fairlane(*home, "--json", "show", "code-1").document["task"]["status"] == "done"
