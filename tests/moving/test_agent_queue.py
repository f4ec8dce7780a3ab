"""An agent-queue home that is moved over goes on as agent-queue would."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND, show_instant
from fairlane.model.project import Project
from fairlane.service import planning, policies, queue
from fairlane.service.conversion import operation
from fairlane.service.reports import listing
from tests.acceptance.commands import fairlane
from tests.moving import agent_queue
from tests.moving.agent_queue import HOUR, NOW, AgentQueueHome
from tests.unit.contexts import TestContext

pytestmark = pytest.mark.slow


def moved(folder, other):
    """A new home with what the other one holds, and the answer."""
    home = TestContext(folder / "home")
    home.context.home.mkdir(parents=True)
    return home, operation.write(home.context, "agent-queue", str(other.folder))


def shown(home, name):
    return listing.show(home.context, name)["task"]


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), events=st.integers(0, 10**6))
def test_it_assigns_what_agent_queue_would_assign(tmp_path_factory, seed, events):
    folder = tmp_path_factory.mktemp("agent-queue")
    other = agent_queue.made(folder / "there", seed)
    home, answer = moved(folder, other)
    policy = answer["policy"].replace("preset = ", 'lease.ttl = "24h"\npreset = ', 1)
    home.policy(policy)
    gone = agent_queue.orphans(other)
    assert {row["id"] for row in answer["skipped"]} == gone
    for name in gone:
        del other.tasks[name]
    state = agent_queue.State.of(other)
    leases: dict[str, str] = {}
    random = Random(events)
    for _ in range(5):
        now = home.context.now() / SECOND
        round = agent_queue.Round(state, now)
        for pick in planning.plan(home.context)["picks"]:
            assert pick["task"] == round.next_action()
            task = other.tasks[pick["task"]]
            taken = {state.running[name] for name in state.running
                     if other.tasks[name]["project_id"] == task["project_id"]}  # fmt: skip
            assert pick["workspace"] is None or pick["workspace"] not in taken
            assert pick["estimate_tokens"] == state.estimate(task["project_id"])
            state.start(pick["task"], pick["workspace"])
        assert round.next_action() is None
        leases |= {row["task"]: row["lease"] for row in home.lease()}
        assert leases.keys() == state.running.keys()
        for name in random.sample(sorted(leases), min(len(leases), 2)):
            used, project = random.randint(1, 60_000), other.tasks[name]["project_id"]
            home.finish(leases.pop(name), used)
            del state.running[name]
            other.tasks[name]["status"] = "COMPLETED"
            state.usage.append((project, now, used))
            state.completed.append((project, now))
            state.samples.setdefault(project, []).insert(0, used)
        home.wait(random.randrange(1, 10) * 60 * SECOND)


def small(folder, **changes) -> AgentQueueHome:
    """One project with nothing in it."""
    other = AgentQueueHome(folder / "there")
    other.projects["p"] = {"id": "p", "name": "P", "credit_weight": 1.0, "status": "ACTIVE"}
    other.projects["p"] |= {"max_concurrent_agents": 9} | changes
    return other


def task(other, name, status="READY", **more):
    row = {"id": name, "project_id": "p", "title": name, "description": "Do it.", "status": status}
    other.tasks[name] = row | {"priority": 100, "created_at": NOW - 60, "updated_at": NOW} | more


def spent(other, name, tokens, age=HOUR, **more):
    row = {"id": f"l{len(other.ledger)}", "project_id": "p", "agent_id": "a", "task_id": name}
    other.ledger.append(row | {"tokens_used": tokens, "timestamp": NOW - age} | more)


def used(home):
    with home.context.store.read() as reading:
        sums = reading.usage_sums("project:", 0)
    return {name: row.tokens[1] for name, row in sums.items() if row.tokens[1]}


def test_what_deleted_tasks_used_counts_for_their_projects_once(tmp_path):
    other = small(tmp_path)
    other.projects["q"] = other.projects["p"] | {"id": "q"}
    task(other, "a", "COMPLETED")
    spent(other, "a", 100)
    spent(other, "deleted", 1000)
    spent(other, "deleted", 70, project_id="q")
    spent(other, "deleted", 5, project_id="gone")
    other.write()
    home, answer = moved(tmp_path, other)
    assert used(home) == {"project:p": 1100, "project:q": 70}
    assert "5 tokens of the ledger belong to no project that is there: left out." in answer["notes"]
    again = operation.write(home.context, "agent-queue", str(other.folder))
    assert (again["changed"], used(home)) == (False, {"project:p": 1100, "project:q": 70})
    with closing(sqlite3.connect(other.folder / "agent-queue.db")) as connection:
        connection.execute(f"INSERT INTO token_ledger VALUES ('n', 'p', 'a', 'a', 8, {NOW})")
        connection.commit()
    assert operation.write(home.context, "agent-queue", str(other.folder))["changed"]
    assert used(home)["project:p"] == 1108


def test_ids_that_cannot_be_names_get_names_wherever_they_occur(tmp_path):
    other = small(tmp_path)
    other.projects["größe"] = other.projects["p"] | {"id": "größe"}
    task(other, "first one", "COMPLETED", project_id="größe")
    task(other, "next", project_id="größe", parent_task_id="first one")
    other.needs = {"next": ["first one"]}
    spent(other, "first one", 70, project_id="größe")
    other.write()
    home, answer = moved(tmp_path, other)
    row = shown(home, "next")
    assert (row["project"], row["parent"]) == ("grosse", "first-one")
    assert [pick["task"] for pick in planning.plan(home.context)["picks"]] == ["next"]
    assert used(home) == {"project:grosse": 70}
    said = "The name of a {} has letters, digits, '.', '_' and '-' only: {}."
    assert said.format("project", "größe is grosse") in answer["notes"]
    assert said.format("task", "first one is first-one") in answer["notes"]


def test_ids_that_other_tasks_have_here_are_named(tmp_path):
    other = small(tmp_path)
    task(other, "a")
    task(other, "b")
    other.write()
    home = TestContext(tmp_path / "home")
    home.context.home.mkdir(parents=True)
    home.add({"id": "a", "prompt": "My own."})
    answer = operation.write(home.context, "agent-queue", str(other.folder))
    assert answer["added"] == 1
    assert shown(home, "a")["project"] == "default"
    assert any("not brought over: a. A home" in note for note in answer["notes"])


def test_an_empty_file_is_no_database(tmp_path):
    (tmp_path / "agent-queue.db").touch()
    with pytest.raises(Invalid, match="not agent-queue's database: no such table: projects"):
        operation.show("agent-queue", str(tmp_path))


def test_what_is_reserved_is_what_the_ledger_teaches(tmp_path):
    other = small(tmp_path)
    other.projects["new"] = other.projects["p"] | {"id": "new"}
    for at in range(1, 11):
        spent(other, f"d{at}", at * 1000, age=at * HOUR)
    for name in ("a", "b", "c"):
        task(other, name)
    task(other, "n", project_id="new")
    other.write()
    home, _ = moved(tmp_path, other)
    picks = planning.plan(home.context)["picks"]
    assert {pick["task"]: pick["estimate_tokens"] for pick in picks} == dict.fromkeys("abcn", 7000)
    leases = {row["task"]: row["lease"] for row in home.lease()}
    for name in ("a", "b"):  # two more, and two that were 7000 or less
        home.finish(leases[name], 50_000)
    home.add({"id": "d", "project": "p"})
    assert planning.plan(home.context)["picks"][0]["estimate_tokens"] == 9000


def test_as_many_run_as_there_were_agents_and_a_raised_cap_is_used(tmp_path):
    other = small(tmp_path)
    for at, state in enumerate(("IDLE", "BUSY", "RETIRED", "IDLE")):
        other.agents.append({"id": f"a{at}", "name": "x", "agent_type": "claude", "state": state})
    for at in range(9):
        task(other, f"t{at}")
    other.write()
    home, answer = moved(tmp_path, other)
    assert "caps.all = 3" in answer["policy"]
    assert "slots" not in answer["settings"]
    assert any(note.startswith("There are 3 agents, so at most 3") for note in answer["notes"])
    assert len(planning.plan(home.context)["picks"]) == 3
    policies.change(home.context, {"caps.all": 6})
    assert len(planning.plan(home.context)["picks"]) == 6


def test_the_database_alone_leaves_rules_and_settings_as_they_are(tmp_path):
    other = small(tmp_path)
    other.agents = [{"id": "a", "name": "x", "state": "IDLE"}]
    spent(other, "a", 100)
    other.write()
    home = TestContext(tmp_path)
    settings_file = tmp_path / "fairlane.toml"
    settings_file.write_text("[worker]\nslots = 1\n")
    answer = operation.write(home.context, "agent-queue", str(other.folder / "agent-queue.db"))
    assert (answer["policy"], answer["written"]) == ("", [])
    assert any("`fairlane policy set caps.all=1` says so here" in note for note in answer["notes"])


def test_statuses_come_in_as_what_they_are(tmp_path):
    other = small(tmp_path)
    other.agents = [{"id": f"a{at}", "name": "x", "state": "IDLE"} for at in range(9)]
    for word in ("DEFINED", "READY", "ASSIGNED", "IN_PROGRESS", "COMPLETED", "FAILED", "BLOCKED"):
        task(other, word.lower(), word, branch_name=f"aq/{word}")
    task(other, "asks", "WAITING_INPUT")
    task(other, "approve", "AWAITING_APPROVAL")
    task(other, "paused", "PAUSED")
    task(other, "later", "PAUSED", resume_after=NOW + HOUR)
    other.write()
    home, answer = moved(tmp_path, other)
    picks = {pick["task"] for pick in planning.plan(home.context)["picks"]}
    assert picks == {"defined", "ready", "assigned", "in_progress"}
    parked = {name: shown(home, name) for name in ("asks", "approve", "failed", "blocked")}
    assert {row["status"] for row in parked.values()} == {"parked"}
    assert parked["asks"]["reason"] == "WAITING_INPUT in agent-queue"
    assert (shown(home, "paused")["hold"] or {})["code"] == "paused"
    assert (shown(home, "later")["hold"] or {})["code"] == "not_before"
    assert shown(home, "in_progress")["attempts"] == 1
    assert shown(home, "in_progress")["meta"]["branch_name"] == "aq/IN_PROGRESS"
    queue.resume(home.context, "task:paused")
    home.wait(round(2 * HOUR * SECOND))
    picks = {pick["task"] for pick in planning.plan(home.context)["picks"]}
    assert {"paused", "later"} <= picks
    notes = " ".join(answer["notes"])
    assert "start again, so stop agent-queue" in notes
    assert "`fairlane resume task:ID`" in notes


def test_rows_that_are_wrong_are_left_out_by_name(tmp_path):
    other = small(tmp_path)
    task(other, "good")
    task(other, "urgent", priority="high")
    task(other, "count", retry_count="x")
    task(other, "foreign", project_id="gone")
    task(other, "waits")
    task(other, "below", parent_task_id="deleted")
    task(other, "untitled", title=None)
    task(other, "nobody", status=None)
    other.needs = {"waits": ["count"], "good": ["good-1"]}
    task(other, "good-1", "COMPLETED")
    spent(other, "good", "many")
    other.write()
    home, answer = moved(tmp_path, other)
    skipped = {row["id"]: (row["where"], row["reason"]) for row in answer["skipped"]}
    row = "agent-queue.db, tasks row"
    assert skipped == {
        "urgent": (f"{row} 2", "priority: not a whole number: 'high'"),
        "count": (f"{row} 3", "retry_count: not a whole number: 'x'"),
        "foreign": (f"{row} 4", "there is no project 'gone'"),
        "waits": (f"{row} 5", "it waits for count, which is left out"),
        "entry l0": (
            "agent-queue.db, token_ledger row 1",
            "tokens_used: not a whole number: 'many'",
        ),
    }
    assert shown(home, "below")["meta"] == {"parent_task_id": "deleted"}
    assert shown(home, "untitled")["title"] == "Do it."
    assert shown(home, "nobody")["status"] == "parked"
    assert operation.show("agent-queue", str(other.folder))["skipped"] == answer["skipped"]


def test_workspaces_are_folders_that_take_one_task_each(tmp_path):
    other = small(tmp_path)
    other.projects["q"] = other.projects["p"] | {"id": "q"}
    link = tmp_path / "mine"
    (link / ".git" / "refs" / "heads" / "aq").mkdir(parents=True)
    (link / ".git" / "refs" / "heads" / "main").write_text("0" * 40)
    (link / ".git" / "refs" / "heads" / "aq" / "go-on").write_text("0" * 40)
    (tmp_path / "copy" / ".git").mkdir(parents=True)
    ws = {"project_id": "p", "source_type": "clone"}
    other.workspaces = [
        ws | {"id": "ws-1", "workspace_path": str(tmp_path / "copy"), "name": "left tree"},
        ws | {"id": "ws-2", "workspace_path": str(link), "source_type": "link"},
        ws | {"id": "ws-3", "workspace_path": str(tmp_path / "missing"), "name": "left tree"},
    ]
    other.projects["p"]["repo_default_branch"] = "main"
    for at in range(5):
        task(other, f"t{at}")
    task(other, "prefers", preferred_workspace_id="ws-2", priority=1)
    task(other, "goes-on", "IN_PROGRESS", branch_name="aq/go-on", priority=2)
    task(other, "q1", project_id="q")
    other.write()
    home, answer = moved(tmp_path, other)
    with home.context.store.read() as reading:
        project = reading.table(Project)["p"]
    assert project.workspaces == ("left-tree", "ws-2", "left-tree-2")
    assert (project.repo, project.base) == (str(link), "main")
    picks = planning.plan(home.context)["picks"]
    assert len(picks) == 3
    assert (picks[0]["task"], picks[0]["workspace"]) == ("prefers", "ws-2")
    assert shown(home, "goes-on")["base"] == "aq/go-on"
    assert any(note.startswith("q has no workspace") for note in answer["notes"])


def test_a_home_runs_to_its_end_in_real_folders(tmp_path):
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", "-b", "main", repo], check=True)
    who = ("-c", "user.name=A", "-c", "user.email=a@b.org")
    first = ("commit", "-q", "--allow-empty", "-m", "first")
    subprocess.run(["git", "-C", repo, *who, *first], check=True)
    other = small(tmp_path, repo_default_branch="main")
    other.agents = [{"id": f"a{at}", "name": "x", "state": "IDLE"} for at in range(3)]
    for at in range(2):
        row = {"id": f"w{at}", "project_id": "p", "source_type": "link"}
        other.workspaces.append(row | {"workspace_path": str(repo)})
    for at in range(5):
        task(other, f"t{at}")
    other.needs = {"t4": ["t0", "t1"]}
    task(other, "bad", project_id="gone")
    other.write()
    home = tmp_path / "home"
    home.mkdir()
    agent = "argv = ['sh', '-c', 'pwd; git branch --show-current > done']\n"
    (home / "fairlane.toml").write_text(f"agent = 'quick'\n[agents.quick]\n{agent}")
    said = fairlane("--home", home, "convert", "agent-queue", other.folder, "--write")
    assert said.code == 0, said
    assert "added 5 of 5 tasks" in said.out
    assert "agent-queue.db, tasks row 6 bad: there is no project 'gone'" in said.out
    env = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.org"}
    env |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.org"}
    assert fairlane("--home", home, "run", "--until-idle", **env).code == 0
    rows = fairlane("--home", home, "--json", "list").document["tasks"]
    assert {row["id"]: row["status"] for row in rows} == {f"t{at}": "done" for at in range(5)}
    assert sorted(path.name for path in (home / "worktrees" / "p").iterdir()) == ["w0", "w1"]
    events = fairlane("--home", home, "--json", "events", "--limit", "500").document["events"]
    flying: set[str] = set()
    ended: list[str] = []
    for event in events:
        if event["kind"] == "leased":
            flying.add(event["task"])
        elif event["kind"] == "succeeded":
            flying.discard(event["task"])
            ended.append(event["task"])
        assert len(flying) <= 2
    assert ended.index("t4") > max(ended.index("t0"), ended.index("t1"))
    branches = ("branch", "--format=%(refname:short)")
    listed = subprocess.run(["git", "-C", repo, *branches], capture_output=True, check=True)
    assert {f"fairlane/t{at}" for at in range(5)} <= set(listed.stdout.decode().split())


def test_context_and_criteria_are_part_of_the_prompt(tmp_path):
    other = small(tmp_path)
    task(other, "a")
    task(other, "b", "COMPLETED", updated_at=10**11)
    spent(other, "b", 5, age=-HOUR)
    other.write()
    with closing(sqlite3.connect(other.folder / "agent-queue.db")) as connection:
        connection.executescript(
            "CREATE TABLE task_context (task_id TEXT, type TEXT, label TEXT, content TEXT);"
            "INSERT INTO task_context VALUES ('a', 'file', NULL, 'See x.py.');"
            "CREATE TABLE task_criteria (task_id TEXT, content TEXT, sort_order INTEGER);"
            "INSERT INTO task_criteria VALUES ('a', 'then this', 10), ('a', 'first this', 2);"
        )
    home, answer = moved(tmp_path, other)
    assert shown(home, "a")["prompt"] == (
        "Do it.\n\n## file\n\nSee x.py.\n\n## Acceptance criteria\n\n- first this\n- then this"
    )
    assert shown(home, "b")["ended_at"] == show_instant(home.context.now())  # no time to come
    assert answer["unknown"] == ["projects.name"]


def test_an_older_database_has_a_folder_an_agent(tmp_path):
    other = small(tmp_path)
    task(other, "a")
    other.write()
    (tmp_path / "tree" / ".git").mkdir(parents=True)
    with closing(sqlite3.connect(other.folder / "agent-queue.db")) as connection:
        connection.executescript(
            "DROP TABLE workspaces; DROP TABLE agents;"
            "CREATE TABLE agent_workspaces (agent_id TEXT, project_id TEXT, workspace_path TEXT);"
            f"INSERT INTO agent_workspaces VALUES ('one', 'p', '{tmp_path}/tree')"
        )
    home, answer = moved(tmp_path, other)
    with home.context.store.read() as reading:
        project = reading.table(Project)["p"]
    assert (project.workspaces, project.repo) == (("one",), f"{tmp_path}/tree")
    assert "caps.all" not in answer["policy"]


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        ("cut", "not agent-queue's database"),
        ("view", "not agent-queue's database: no such table: tasks"),
        ("nothing", "not agent-queue's database: no such table: projects"),
    ],
)
def test_a_database_that_cannot_be_read_is_refused(tmp_path, harm, message):
    other = small(tmp_path)
    for at in range(500):
        task(other, f"t{at}", description="x" * 500)
    other.write()
    file = other.folder / "agent-queue.db"
    if harm == "cut":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("DROP TABLE tasks")
            columns = "i AS id, i AS project_id, i AS title, i AS status"
            connection.execute(f"CREATE VIEW tasks AS {endless} SELECT {columns} FROM n")
            if harm == "nothing":
                connection.execute("DROP TABLE projects")
            connection.commit()
    home = TestContext(tmp_path)
    with pytest.raises(Invalid) as refused:
        operation.write(home.context, "agent-queue", str(other.folder))
    assert message in refused.value.message
    assert home.count() == 0


def test_tables_and_columns_without_a_counterpart_are_listed(tmp_path):
    other = small(tmp_path)
    task(other, "a", task_type="bugfix")
    other.write()
    with closing(sqlite3.connect(other.folder / "agent-queue.db")) as connection:
        connection.execute('CREATE TABLE "odd ""name" (x)')
        connection.execute('INSERT INTO "odd ""name" VALUES (1)')
        connection.execute("CREATE TABLE hooks (x)")
        connection.commit()
    home, answer = moved(tmp_path, other)
    assert answer["unknown"] == [
        "projects.name",
        "tasks.task_type (kept in meta)",
        'table odd "name',
    ]
    assert shown(home, "a")["meta"] == {"task_type": "bugfix"}
