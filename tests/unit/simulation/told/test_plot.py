"""The picture: means of what waits and runs in each column, and an SVG that any reader takes."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND
from fairlane.simulation import report
from fairlane.simulation.plot import shapes, svg
from fairlane.simulation.plot.series import OTHERS, drawn, means, series_of, shown_projects
from tests.unit.simulation.told.runs import BEGIN, attempt, minute, run, task, two_projects

_SVG = "{http://www.w3.org/2000/svg}"


def picture(*runs):
    return ET.fromstring(svg(report.answer("a <b> & c", list(runs)), list(runs)))


def texts(root):
    return [each.text for each in root.iter(f"{_SVG}text")]


def test_a_level_is_its_mean_in_each_column():
    borders = [0, 10, 20, 30]
    assert means([(5, 2), (15, -1)], borders) == [1.0, 1.5, 1.0]
    assert means([(-5, 3), (20, -3)], borders) == [3.0, 3.0, 0.0]
    assert means([(30, 1), (99, 1)], borders) == [0.0, 0.0, 0.0]
    assert means([], borders) == [0.0, 0.0, 0.0]
    assert means([(0, 1)], [5, 5, 5]) == [0.0, 0.0]


def test_curves_tell_who_waits_and_runs_when():
    one = two_projects()
    curves = series_of(one, shown_projects([one]), 20, one.end)
    assert curves.running["web"] == [0.0] + [1.0] * 15 + [0.0] * 4
    assert curves.running["api"] == [0.0] * 2 + [1.0] * 2 + [0.0] * 16
    assert curves.waiting["web"] == [2.0] + [1.0] * 10 + [0.0] * 9
    assert curves.waiting["api"] == [0.0] * 5 + [1.0] * 15
    assert curves.slots == [2.0] * 20


def test_shares_are_of_the_tokens_used_so_far():
    one = two_projects()
    curves = series_of(one, shown_projects([one]), 20, one.end)
    assert (curves.shares["web"][0], curves.shares["api"][0]) == (0.0, 0.0)
    assert (curves.shares["web"][1], curves.shares["api"][1]) == (1.0, 0.0)
    assert curves.shares["web"][-1] == pytest.approx(0.75)
    assert curves.targets == {"api": 0.25, "web": 0.75}
    for column in range(1, 20):
        assert sum(values[column] for values in curves.shares.values()) == pytest.approx(1)


def test_between_attempts_a_task_waits_unless_it_is_parked():
    attempts = (
        attempt("a", leased_at=minute(0), ended_at=minute(5), outcome="failed"),
        attempt("a", number=2, leased_at=minute(10), ended_at=minute(15), outcome="failed"),
    )
    parked = task("a", started_at=minute(0), ended_at=None, status="parked")
    one = run((parked,), attempts)
    waiting = series_of(one, {"web": "web"}, 4, one.end).waiting["web"]
    assert waiting == [0.0, 1.0, 0.0, 0.0]
    queued = run((task("a", started_at=minute(0), ended_at=None, status="queued"),), attempts)
    assert series_of(queued, {"web": "web"}, 4, one.end).waiting["web"] == [0.0, 1.0, 0.0, 1.0]


def test_slots_that_change_are_a_curve():
    one = run(slots=((BEGIN, 2), (minute(5), 0), (minute(10), 4)))
    assert series_of(one, {}, 4, one.end).slots == [2.0, 0.0, 4.0, 4.0]


def test_the_largest_projects_have_colours_of_their_own():
    tasks = [task(f"t{number}", f"p{number:02}") for number in range(10)]
    tasks += [task("more", "p09")]
    shown = shown_projects([run(tuple(tasks))])
    assert [name for name, as_what in shown.items() if as_what == OTHERS] == ["p06", "p07", "p08"]
    assert drawn(shown) == ["p00", "p01", "p02", "p03", "p04", "p05", "p09", OTHERS]
    assert len(drawn(shown)) == len(shapes.COLOURS)


def test_a_project_that_is_called_others_keeps_its_place():
    shown = shown_projects([run((task("a", "others"), task("b", "zoo")))])
    assert drawn(shown) == ["others", "zoo"]


@pytest.mark.parametrize("count", range(1, 8))
def test_a_panel_a_policy_inside_the_picture(count):
    root = picture(*(two_projects(policy=f"policy-{number}") for number in range(count)))
    words = texts(root)
    assert [word for word in words if word.startswith("policy-")] == [
        f"policy-{number}" for number in range(count)
    ]
    wide, tall = float(root.get("width")), float(root.get("height"))
    for each in root.iter(f"{_SVG}text"):
        assert 0 <= float(each.get("x")) <= wide
        assert 0 <= float(each.get("y")) <= tall
    for each in root.iter(f"{_SVG}path"):
        right = [float(x) for x in re.findall(r"H([\d.]+)", each.get("d"))]
        down = [float(y) for y in re.findall(r"V([\d.]+)", each.get("d"))]
        assert all(x <= wide for x in right)
        assert all(y <= tall for y in down)


def test_the_picture_names_projects_lines_and_times():
    words = texts(picture(two_projects()))
    assert {"api", "web", "slots", "target share", "waiting", "running", "share of tokens"} <= {
        *words
    }
    assert {"00:05", "00:10", "00:15"} <= {*words}


def test_words_of_users_are_no_markup():
    root = picture(two_projects(policy="<script>"), run((task("a", "x\x1b<"),)))
    assert root.find(f"{_SVG}title").text.startswith("a <b> & c: ")
    assert "<script>" in texts(root)
    assert root.find(f".//{_SVG}script") is None
    assert not any("\x1b" in (word or "") for word in texts(root))


def test_runs_of_other_lengths_share_one_axis():
    root = picture(two_projects(), two_projects(policy="slow", end=minute(120)))
    first, second = (
        [word for word in part if re.fullmatch(r"\d\d:\d\d|Thu", word)]
        for part in _halves(texts(root), "slow")
    )
    assert first == second != []


def _halves(words, border):
    return words[: words.index(border)], words[words.index(border) :]


def test_a_run_in_which_nothing_happens_is_drawn():
    assert "balanced" in texts(picture(run(end=BEGIN, slots=())))


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (20 * MINUTE, ["00:05", "00:10", "00:15", "00:20"]),
        (5 * HOUR, ["01:00", "02:00", "03:00", "04:00", "05:00"]),
        (3 * DAY, ["12:00", "Fri", "12:00", "Sat", "12:00", "Sun"]),
        (8 * DAY, ["Fri", "Sat", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri"]),
        (400 * DAY, None),
    ],
)
def test_times_are_round(length, shown):
    strip = shapes.Strip(0, 0, 400, 10, 1)
    words = re.findall(r">([^<>]+)</text>", "".join(strip.times(BEGIN, BEGIN + length)))
    assert words[-len(shown) :] == shown if shown else 2 <= len(words) <= 20


@pytest.mark.parametrize(
    ("value", "top"),
    [(0, 2), (2, 2), (2.1, 4), (5, 6), (7, 8), (9, 10), (61, 80), (101, 200), (210, 300)],
)
def test_scales_end_at_round_numbers(value, top):
    assert shapes.round_up(value) == top


def test_the_same_runs_give_the_same_picture():
    runs = [two_projects(), two_projects(held={"b": SECOND, "a": SECOND})]
    document = report.answer("x", runs)
    assert svg(document, runs) == svg(document, list(runs))
