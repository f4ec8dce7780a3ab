"""A queue of cool-workflow: read whatever its age, told without losing anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlane.intake.sources import queue_json
from fairlane.intake.sources.base import Standing, Where, WriteBack
from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND, parse_instant

NOON = parse_instant("2026-01-30T12:00:00Z")
OLD = {
    "schemaVersion": 1, "id": "q-1", "appId": "site", "repo": "/srv/site", "priority": 100,
    "enqueuedAt": "2026-01-30T08:00:00.000Z", "status": "pending",
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "queue.json"


def put(file: Path, *entries: dict[str, Any], indent: int | None = 2) -> None:
    document = {"schemaVersion": 1, "entries": entries, "ours": {"z": 1, "a": [2]}}
    marks = (",", ": ") if indent else (",", ":")
    file.write_text(json.dumps(document, indent=indent, separators=marks) + "\n")


def entry(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())["entries"][0]
    return found


def told(status: str, reason: str = "", item: str = "q-1", **facts: Any) -> WriteBack:
    return WriteBack(item, item, status, NOON, reason, facts)


def test_an_old_entry_is_read(file):
    put(file, OLD)
    (item,) = queue_json.read(Where(file)).items
    assert (item.id, item.standing, item.failures, item.blocked) == ("q-1", Standing.OPEN, 0, "")
    assert item.record == {
        "title": "site",
        "prompt": "Do site.",
        "priority": 100,
        "not_before": None,
        "meta": {
            "appId": "site", "enqueuedAt": "2026-01-30T08:00:00.000Z", "repo": "/srv/site",
        },
    }  # fmt: skip


def test_a_new_entry_keeps_its_count_and_its_wait(file):
    when = "2026-01-30T12:00:05.250Z"
    more = {"attempts": 2, "nextEligibleAt": when, "note": "Mend it.", "inputs": {"page": "é"}}
    put(file, OLD | more)
    (item,) = queue_json.read(Where(file)).items
    assert (item.failures, item.record["not_before"]) == (2, when)
    assert item.record["prompt"] == 'Mend it.\n\nInputs:\n{\n  "page": "é"\n}'


@pytest.mark.parametrize(
    ("status", "standing", "parked"),
    [
        ("ready", Standing.OPEN, ""),
        ("parked", Standing.OPEN, "exit 1"),
        ("leased", Standing.TAKEN, ""),
        ("draining", Standing.TAKEN, ""),
        ("drained", Standing.CLOSED, ""),
        ("cancelled", Standing.CLOSED, ""),
    ],
)
def test_what_a_status_means(file, status, standing, parked):
    put(file, OLD | {"status": status, "parkedReason": "exit 1"})
    (item,) = queue_json.read(Where(file)).items
    assert (item.standing, item.parked) == (standing, parked)


def test_entries_come_in_the_order_of_the_queue(file):
    early, late = "2026-01-30T10:00:00Z", "2026-01-30T10:00:00.500Z"  # as text it is before it
    put(
        file,
        OLD | {"id": "q-3", "enqueuedAt": late},
        OLD | {"id": "q-2", "enqueuedAt": early},
        OLD | {"id": "q-1", "enqueuedAt": early},
    )
    items = queue_json.read(Where(file)).items
    assert [(item.id, item.created_at) for item in items] == [
        ("q-1", parse_instant(early)), ("q-2", parse_instant(early)), ("q-3", parse_instant(late)),
    ]  # fmt: skip


def test_a_lease_ends_when_it_expires(file):
    put(file, OLD | {"status": "leased", "leaseExpiresAt": "2026-01-30T12:00:00.000Z"})
    (item,) = queue_json.read(Where(file)).items
    assert item.taken_until == NOON
    assert item.why == "it is leased until 2026-01-30T12:00:00.000Z"


def test_a_lease_without_an_end_has_expired(file):
    put(file, OLD | {"status": "leased", "leaseId": "x"})
    (item,) = queue_json.read(Where(file)).items
    assert item.taken_until == 0


def test_a_wait_that_is_over_goes_from_the_file(file):
    wait = {"nextEligibleAt": "2026-01-30T13:00:00.000Z"}
    put(file, OLD | wait | {"status": "ready"})
    assert queue_json.write(Where(file), [told("queued")]) == [], "it came with it"
    assert queue_json.write(Where(file), [told("queued", told="queued")]) == ["q-1"]
    assert "nextEligibleAt" not in entry(file)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"schemaVersion": 2}, "schemaVersion 2 is not known"),
        ({"enqueuedAt": "yesterday"}, "enqueuedAt: not a time: 'yesterday'"),
    ],
)
def test_an_entry_of_another_shape_is_left_out_by_name(file, wrong, message):
    put(file, OLD | wrong, OLD | {"id": "q-2"})
    found = queue_json.read(Where(file))
    assert [item.id for item in found.items] == ["q-2"]
    assert [(each.id, each.bad, each.sure) for each in found.left_out] == [("q-1", True, True)]
    assert message in found.left_out[0].reason


def test_bad_entries_are_named(file):
    bad = [{"id": ""}, 7, OLD | {"status": "lost"}, OLD | {"attempts": -1}]
    put(file, *bad, OLD | {"id": "q-2"})  # type: ignore[arg-type]
    found = queue_json.read(Where(file))
    assert [item.id for item in found.items] == ["q-2"]
    assert [each.id for each in found.left_out] == [
        "queue.json: entry 1", "queue.json: entry 2", "q-1", "q-1",
    ]  # fmt: skip
    assert "status: 'lost' is none of pending, ready" in found.left_out[2].reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "there is no list `entries`"),
        ('{"schemaVersion": 2, "entries": []}', "schemaVersion 2 is not known"),
    ],
)
def test_a_file_that_is_no_queue_is_refused(file, text, message):
    file.write_text(text)
    for attempt in (
        lambda: queue_json.read(Where(file)),
        lambda: queue_json.write(Where(file), [told("done")]),
    ):
        with pytest.raises(Invalid, match=message):
            attempt()
    assert file.read_text() == text


def test_the_life_of_an_entry_is_told_in_its_own_words(file):
    put(file, OLD)
    assert queue_json.write(Where(file), [told("queued")]) == [], "pending is eligible too"
    expires = NOON + 300 * SECOND
    queue_json.write(
        Where(file), [told("leased", attempts=1, lease="l1", lease_expires_at=expires)]
    )
    assert entry(file) == OLD | {
        "status": "leased", "attempts": 1, "leaseId": "l1",
        "leaseExpiresAt": "2026-01-30T12:05:00.000Z",
    }  # fmt: skip
    until = NOON + SECOND
    again = told("queued", told="leased", attempts=1, failures=1, backoff_until=until)
    queue_json.write(Where(file), [again])
    assert entry(file) == OLD | {
        "status": "ready", "attempts": 1, "nextEligibleAt": "2026-01-30T12:00:01.000Z",
    }  # fmt: skip
    queue_json.write(Where(file), [told("parked", "failed: exit 1", told="queued", failures=3)])
    assert entry(file)["parkedReason"] == "failed: exit 1"
    queue_json.write(Where(file), [told("done", told="parked", failures=0)])
    last = entry(file)
    assert (last["status"], last["drainedAt"]) == ("drained", "2026-01-30T12:00:00.000Z")
    assert {"parkedReason", "leaseId"}.isdisjoint(last)


@pytest.mark.parametrize("status", ["parked", "cancelled", "leased", "drained"])
@pytest.mark.parametrize("last", [None, "queued"])
def test_what_others_have_set_stays(file, status, last):
    put(file, OLD | {"status": status, "attempts": 3, "parkedReason": "by ana"})
    before = file.read_bytes()
    assert queue_json.write(Where(file), [told("queued", told=last)]) == []
    assert file.read_bytes() == before


def test_what_we_parked_is_ready_again_after_a_retry(file):
    put(file, OLD | {"status": "parked", "attempts": 3, "parkedReason": "failed: exit 1"})
    assert queue_json.write(Where(file), [told("queued", told="parked", failures=0)]) == ["q-1"]
    assert entry(file) == OLD | {"status": "ready", "attempts": 0}


@pytest.mark.parametrize("indent", [2, 4, None])
def test_all_else_stays_as_it_was_set(file, indent):
    put(file, OLD | {"colour": "bl\u00fc"}, OLD | {"id": "q-2"}, indent=indent)
    before = file.read_text()
    assert queue_json.write(
        Where(file), [told("canceled", item="q-2"), told("done", item="x")]
    ) == ["q-2"]
    head, _, tail = before.rpartition('"pending"')
    assert file.read_text() == f'{head}"cancelled"{tail}'


def test_a_link_stays_a_link_and_nothing_is_left_beside(file, tmp_path):
    put(file, OLD)
    file.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    assert queue_json.write(Where(link), [told("done")]) == ["q-1"]
    assert link.is_symlink()
    assert entry(file)["status"] == "drained"
    assert file.stat().st_mode & 0o777 == 0o640
    assert {each.name for each in tmp_path.iterdir()} == {"link.json", "queue.json"}
