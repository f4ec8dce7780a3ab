"""Cards: what a folder of Markdown tells, and what is written into it."""

from __future__ import annotations

import subprocess
from collections import Counter
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.intake.sources import cards
from fairlane.intake.sources.base import Standing, Where, Writable, WriteBack
from fairlane.model.errors import Invalid, Refused
from fairlane.model.instant import DAY, parse_instant
from fairlane.model.values import is_name
from fairlane.service.sync.importing import ImportOptions, bring_in

NOW = parse_instant("2026-01-30T12:00:00Z")
CARD = """---
owner: ann
agent_flow: implement
agent_status: {status}
branch: agent/login
risk: low   # for now
review: required
parallelizable: false
---

# Log in with a key

Summary:
People can log in with a key.

Acceptance Criteria:
- [ ] it works
- [ ] it is quick

Notes:
None.

History:
- 2026-01-29 - Created by ann
"""
PHASE = "phase-5-agent-integration"


def put(folder: Path, name: str, text: str = CARD, status: str = "idle") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.replace("{status}", status).encode())
    return path


def only(folder: Path):
    found = cards.read(Where(folder))
    assert len(found.items) == 1, found.left_out
    return found.items[0]


def told(status, last=None, at=NOW, reason="", item=f"{PHASE}/login"):
    return WriteBack(item, "t", status, at, reason, {"told": last})


def test_a_card_becomes_an_item(tmp_path):
    path = put(tmp_path, f"project/{PHASE}/backlog/login.md")
    found = cards.read(Where(tmp_path))
    (item,) = found.items
    assert (item.id, item.group, item.standing) == (f"{PHASE}/login", PHASE, Standing.OPEN)
    assert item.where == str(path)
    prompt = str(item.record["prompt"])
    assert prompt.startswith("# Log in with a key\n\nSummary:")
    assert prompt.endswith("Notes:\nNone.")
    assert item.record == {
        "id": f"{PHASE}.login",
        "title": "Log in with a key",
        "prompt": prompt,
        "kind": "implement",
        "parallel": False,
        "meta": {"owner": "ann", "branch": "agent/login", "risk": "low", "review": "required"},
    }
    (phase,) = found.collections
    assert (phase.id, phase.name, phase.title) == (PHASE, PHASE, "phase 5 agent integration")


@pytest.mark.parametrize(
    ("line", "parallel"),
    [("parallelizable: true", True), ("parallelizable:", False), ("", False)],
)
def test_a_card_is_parallel_only_where_it_says_so(tmp_path, line, parallel):
    put(tmp_path, "a.md", CARD.replace("parallelizable: false", line))
    assert only(tmp_path).record["parallel"] is parallel


@pytest.mark.parametrize("root", ["", "project", f"project/{PHASE}", f"project/{PHASE}/backlog",
                                  f"project/{PHASE}/backlog/login.md"])  # fmt: skip
def test_an_item_is_the_same_whichever_folder_is_given(tmp_path, root):
    put(tmp_path, f"project/{PHASE}/backlog/login.md")
    item = only(tmp_path / root)
    assert (item.id, item.group) == (f"{PHASE}/login", PHASE)


def test_a_card_that_moves_between_lanes_stays_the_same_item(tmp_path):
    path = put(tmp_path, f"{PHASE}/backlog/login.md")
    before = only(tmp_path)
    lane = tmp_path / PHASE / "in-progress"
    lane.mkdir()
    path.rename(lane / path.name)
    after = only(tmp_path)
    assert (after.id, after.record) == (before.id, before.record)


@pytest.mark.parametrize(
    ("status", "standing", "why"),
    [
        ("", Standing.OPEN, ""),
        ("null", Standing.OPEN, ""),
        ("idle", Standing.OPEN, ""),
        ("queued", Standing.TAKEN, "agent_status is queued"),
        ("running", Standing.TAKEN, "agent_status is running"),
        ("succeeded", Standing.CLOSED, "agent_status is succeeded"),
        ("failed", Standing.CLOSED, "agent_status is failed"),
        ("canceled", Standing.CLOSED, "agent_status is canceled"),
    ],
)
def test_what_a_status_says(tmp_path, status, standing, why):
    put(tmp_path, "a.md", status=status)
    item = only(tmp_path)
    assert (item.standing, item.why) == (standing, why)


def test_what_lies_in_done_is_closed(tmp_path):
    put(tmp_path, f"{PHASE}/done/a.md")
    item = only(tmp_path)
    assert (item.standing, item.why) == (Standing.CLOSED, "it is in done/")


def test_what_we_wrote_ourselves_is_no_news(tmp_path):
    put(tmp_path, f"{PHASE}/backlog/login.md")
    standings = {}
    last = None
    for status in ("queued", "canceled", "queued", "running", "parked", "queued", "done"):
        cards.write(Where(tmp_path), [told(status, last)])
        last, standings[status] = status, only(tmp_path).standing
    assert standings == {
        "queued": Standing.OPEN,
        "canceled": Standing.TAKEN,
        "running": Standing.TAKEN,
        "parked": Standing.TAKEN,
        "done": Standing.CLOSED,
    }


def test_what_is_left_out_is_named(tmp_path):
    put(tmp_path, "1-readme.md", "# No card\n")
    put(tmp_path, "backlog/9-bare.md", "# No card\n")
    put(tmp_path, "9-empty.md", "")
    put(tmp_path, "9-half.md", "---\r\nagent_flow: implement\r\nagent_st")
    put(tmp_path, "2-mine.md", CARD.replace("implement", "null"))
    put(tmp_path, "3-broken.md", "---\na: [\n---\n")
    put(tmp_path, "4-flow.md", CARD.replace("implement", "two words"))
    put(tmp_path, "5-status.md", status="paused")
    put(tmp_path, "6-parallel.md", CARD.replace("parallelizable: false", "parallelizable: maybe"))
    put(tmp_path, "backlog/twin.md")
    put(tmp_path, "done/twin.md")
    put(tmp_path, ".hidden/a.md")
    (tmp_path / "7-bytes.md").write_bytes(b"---\na: \xff\n---\n")
    (tmp_path / "8-link.md").symlink_to("/etc/hostname")
    found = cards.read(Where(tmp_path))
    known = "idle, queued, running, succeeded, failed, canceled"
    unknown = f"agent_status: 'paused' is none of {known}"
    assert [item.id for item in found.items] == ["twin"]
    assert [(each.id, each.bad, each.reason) for each in found.left_out] == [
        ("2-mine", False, "no agent_flow"),
        ("3-broken", True, found.left_out[1].reason),
        ("4-flow", True, "agent_flow: not a name: 'two words'"),
        ("5-status", True, unknown),
        ("6-parallel", True, "parallelizable: not true or false: 'maybe'"),
        ("7-bytes", True, "it is not UTF-8 text"),
        ("8-link", True, "it is a link that leads out of the folder"),
        ("9-empty", True, "it is empty"),
        ("9-half", True, "front matter is not closed"),
        ("9-bare", True, "there is no front matter"),
        ("twin", True, f"the same card as {tmp_path}/backlog/twin.md"),
    ]  # fmt: skip
    assert found.left_out[1].reason.startswith("front matter is not YAML: ")


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(Invalid, match="there is no such folder") as caught:
        cards.read(Where(tmp_path / "gone"))
    assert caught.value.hint == "Give a folder of cards, or one card."
    with pytest.raises(Invalid, match="cards are files"):
        cards.read(Where(text="---\n---\n"))


def test_phases_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("phase-10-c/a.md", "phase-2-b/a.md", "phase-1-a/10.md", "phase-1-a/9.md"):
        put(tmp_path, name)
    found = cards.read(Where(tmp_path))
    ids = [item.id for item in found.items]
    assert ids == ["phase-1-a/9", "phase-1-a/10", "phase-2-b/a", "phase-10-c/a"]


def test_no_two_cards_have_one_name(tmp_path):
    for name in ("a/b.md", "a.b.md", "a b.md", "a-b.md", "ä b.md", f"{'x' * 200}.md"):
        put(tmp_path, name)
    names = {item.id: item.record["id"] for item in cards.read(Where(tmp_path)).items}
    assert len(set(names.values())) == 6
    assert (names["a.b"], names["a-b"]) == ("a.b", "a-b")
    assert str(names["a/b"]).startswith("a.b-")
    assert names["a b"] != names["ä b"]
    assert all(map(is_name, names.values()))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("phase-1-core/backlog/1.1-project-loader.md", "phase-1-core.1.1-project-loader"),
        ("phase-1-core/In Progress/1.1-project-loader.md", "phase-1-core.1.1-project-loader"),
        ("phase-1-core/done/Login form (v2).md", "phase-1-core.Login-form-v2"),
        ("phase-1-core/backlog/api/größe in Zürich.md", "phase-1-core.api.grosse-in-Zurich"),
        ("phase-1-core/backlog/登录.md", "phase-1-core-e0b78c0f"),
        ("phase-1-core/backlog/poetry.lock.md", "phase-1-core.poetry"),
    ],
)
def test_a_name_can_be_read(tmp_path, path, name):
    put(tmp_path, path)
    assert only(tmp_path).record["id"] == name


def test_a_task_keeps_the_name_that_it_got(office, tmp_path):
    put(tmp_path, "phase-1/a b.md")
    (row,) = bring_in(office.context, "cards", Where(tmp_path), ImportOptions())["created"]
    put(tmp_path, "phase-1/a-b.md")
    (new,) = bring_in(office.context, "cards", Where(tmp_path), ImportOptions())["created"]
    assert (row["id"], new["id"]) == ("phase-1.a-b", f"phase-1.a-b-{mark('phase-1/a-b')}")


def mark(text):
    return sha256(text.encode()).hexdigest()[:8]


def test_telling_changes_the_status_and_adds_history_and_nothing_else(tmp_path):
    assert isinstance(cards, Writable)
    path = put(tmp_path, f"{PHASE}/backlog/login.md")

    def git(*words):
        return subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "cards")
    where, last = Where(tmp_path), None
    for days, status in enumerate(["queued", "leased", "running", "done"]):
        wrote = cards.write(where, [told(status, last, NOW + days * DAY)])
        assert wrote == ([] if status == "running" else [f"{PHASE}/login"])
        assert cards.write(where, [told(status, last, NOW + days * DAY)]) == []
        last = status
    diff = git("diff", "--unified=0").splitlines()[4:]
    assert [line for line in diff if not line.startswith("@@")] == [
        "-agent_status: idle",
        "+agent_status: succeeded",
        "+- 2026-01-30 - Fairlane: queued",
        "+- 2026-01-31 - Fairlane: running",
        "+- 2026-02-02 - Fairlane: succeeded",
    ]
    assert git("status", "--short") == f" M {PHASE}/backlog/login.md\n"
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_parked_task_says_why_in_one_line(tmp_path):
    path = put(tmp_path, f"{PHASE}/login.md", status="running")
    cards.write(Where(tmp_path), [told("parked", "running", reason="failed: exit 1\n\x1b[31mno")])
    text = path.read_text()
    assert "agent_status: failed\n" in text
    assert text.endswith("- 2026-01-30 - Fairlane: failed - failed: exit 1 [31mno\n")


@pytest.mark.parametrize("by_hand", ["idle", "succeeded", "canceled"])
def test_what_a_person_set_since_stays(tmp_path, by_hand):
    path = put(tmp_path, f"{PHASE}/login.md")
    cards.write(Where(tmp_path), [told("queued")])
    edited = path.read_text().replace("agent_status: queued", f"agent_status: {by_hand}")
    path.write_text(edited)
    assert cards.write(Where(tmp_path), [told("running", "queued")]) == []
    assert path.read_text() == edited


def test_a_telling_that_was_written_but_not_remembered_is_gone_on_from(tmp_path):
    path = put(tmp_path, f"{PHASE}/login.md")
    cards.write(Where(tmp_path), [told("queued"), told("running")])
    assert cards.write(Where(tmp_path), [told("done", None)]) == [f"{PHASE}/login"]
    assert "agent_status: succeeded\n" in path.read_text()


def test_a_person_may_edit_all_the_rest_meanwhile(tmp_path):
    path = put(tmp_path, f"{PHASE}/login.md")
    cards.write(Where(tmp_path), [told("queued")])
    path.write_text(path.read_text().replace("it is quick", "it is very quick"))
    assert cards.write(Where(tmp_path), [told("running", "queued")])
    assert "- [ ] it is very quick\n" in path.read_text()


def test_a_card_without_history_gets_one(tmp_path):
    text = CARD.partition("\nHistory:")[0].replace("\n", "\r\n")
    path = put(tmp_path, f"{PHASE}/login.md", text)
    before = path.read_bytes()
    cards.write(Where(tmp_path), [told("queued")])
    expected = before.replace(b"agent_status: idle", b"agent_status: queued")
    assert path.read_bytes() == expected + b"\r\nHistory:\r\n- 2026-01-30 - Fairlane: queued\r\n"
    assert only(tmp_path).record["prompt"].endswith("Notes:\nNone.")


def test_history_in_the_middle_grows_where_it_stands(tmp_path):
    text = CARD.replace("Notes:\n", "Later:\n").replace("Summary:", "History:\n\nSummary:", 1)
    path = put(tmp_path, f"{PHASE}/login.md", text.split("\nHistory:\n- ")[0])
    cards.write(Where(tmp_path), [told("queued")])
    assert "History:\n- 2026-01-30 - Fairlane: queued\n\nSummary:\n" in path.read_text()


def test_a_card_that_is_gone_is_not_told(tmp_path):
    put(tmp_path, "other.md")
    assert cards.write(Where(tmp_path), [told("queued")]) == []


def test_what_cannot_be_told_is_named(tmp_path):
    path = put(tmp_path, "login.md", "---\nagent_flow: review\nagent_status: |\n  idle\n---\n")
    with pytest.raises(Refused) as caught:
        cards.write(Where(tmp_path), [told("queued", item="login")])
    assert caught.value.message == f"{path}: the value of 'agent_status' is not one line"


BODIES = st.lists(
    st.sampled_from(
        ["", "Text.", "# Title", "Summary:", "History:", "## History", "Notes:", "- [ ] do", "```",
         "- 2026-01-01 - by hand", "- 2026-01-01 - Fairlane: running", "  History:", "---"]
    ),
    max_size=10,
)  # fmt: skip


@given(
    BODIES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\ufeff"]), st.booleans(),
    st.lists(st.sampled_from(sorted(cards.SAID)), max_size=5),
)  # fmt: skip
def test_whatever_is_told_lines_are_added_and_none_is_lost(body, end, mark, ends, statuses):
    with TemporaryDirectory() as folder:
        path = Path(folder, "login.md")
        head = ["---", "agent_status: idle # ours", "agent_flow: review", "---"]
        text = mark + end.join([*head, *body]) + (end if ends else "")
        path.write_bytes(text.encode())
        before, last, said = only(Path(folder)), None, []
        for status in statuses:
            if cards.write(Where(Path(folder)), [told(status, last, item="login")]):
                said.append(cards.SAID[status])
            last = status
        lines, now = text.split(end), path.read_bytes().decode().split(end)
        assert now[:1] + now[2:4] == lines[:1] + lines[2:4]
        assert now[1] == f"agent_status: {said[-1] if said else 'idle'} # ours"
        added = list((Counter(now[4:]) - Counter(lines[4:])).elements())
        assert not Counter(lines[4:]) - Counter(now[4:])
        ours = [line for line in added if line not in ("", "History:")]
        assert sorted(ours) == sorted(f"- 2026-01-30 - Fairlane: {each}" for each in said)
        assert only(Path(folder)).record == before.record
