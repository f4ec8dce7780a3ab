"""What an issue's text says that it waits for, and what only looks like it."""

from __future__ import annotations

import json

import pytest

from fairlane.intake.trackers.issue_text import blockers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Blocked by №12", ["№12"]),
        ("It is blocked by: №12, №13 and acme/api№7.", ["№12", "№13", "acme/api№7"]),
        ("**Depends on** №12; №13", ["№12", "№13"]),
        ("depends on https://github.com/acme/api/issues/7, and №3", ["acme/api№7", "№3"]),
        ("### Blocked by\r\n\r\n- №12\r\n- [ ] a/b№7 the other\r\n\r\n- №99", ["№12", "a/b№7"]),
        ("Blocked by:\n- [x] №12\n- [ ] №13\n", ["№13"]),
        ("Parts:\n- [ ] №12\n- [x] №13\n- [ ] write it (№14)\n- №15", ["№12"]),
        ("Blocked by №12\n\n- №14 is near", ["№12"]),
        ("Not blocked by №12, no longer blocked by №13, was blocked by №14", []),
        ("```\nBlocked by №12\n```\n`blocked by №13` <!-- blocked by №14 -->", []),
        ("~~Blocked by №15~~", []),
        ("> Blocked by №12\n\nSee №13. Closes №14.", []),
        ("Blocked by the weather. Depends on luck №12", []),
        ("blocked by №" + "9" * 40, []),
    ],
)  # fmt: skip
def test_what_comes_first(text, found):
    text, found = (
        json.loads(json.dumps(each, ensure_ascii=False).replace("№", "#")) for each in (text, found)
    )
    assert [f"{repository}#{number}" for repository, number in blockers(text)] == found


def test_a_huge_text_takes_no_time():
    for text in (
        "blocked by " + "a/" * 100_000,
        "Blocked by:\n" + f"- {chr(35)}1\n" * 20_000,
        "`" * 99_999,
    ):
        assert len(list(blockers(text))) <= 1
