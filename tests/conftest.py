"""Hypothesis profiles, and the soak: property tests that run until their time is up."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from unittest import SkipTest

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("fairlane.testing")

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=60, deadline=None, print_blob=True)
settings.register_profile("soak", max_examples=5_000, deadline=None, print_blob=True)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
settings.load_profile(PROFILE)

SOAK_SECONDS = 60 * float(os.environ.get("SOAK_MINUTES", "10"))
SOAK_END = monotonic() + SOAK_SECONDS


class SoakShare:
    """The time that one soak test may use, counted from its start; never past the soak's end."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = SOAK_END

    def start(self) -> None:
        self.end = min(SOAK_END, monotonic() + self.seconds)

    def left(self) -> float:
        return self.end - monotonic()


SHARE = pytest.StashKey[SoakShare]()
SLOW_FILE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that is slow as a whole is not imported where slow tests are left out."""
    if "not slow" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return True if SLOW_FILE.search(collection_path.read_text("utf-8")) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under profile `soak` every Hypothesis test soaks; all get equal time, or what they name.

    Where too much is named, all that name a time get less of it.
    """
    if PROFILE != "soak":
        return
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.soak)
    soaking = [item for item in items if item.get_closest_marker("soak")]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    named = {item.nodeid: named_seconds(item) for item in soaking if named_seconds(item)}
    half = SOAK_SECONDS * workers / 2  # of the soak's time at most: the rest is for all others
    part = min(1.0, half / sum(named.values())) if named else 1.0
    named = {name: seconds * part for name, seconds in named.items()}
    items.sort(key=lambda item: -named.get(item.nodeid, 0.0))  # the long ones first
    turns = max(1, -(-(len(soaking) - len(named)) // workers))
    equal = (SOAK_SECONDS - sum(named.values()) / workers) / turns
    for item in soaking:
        item.stash[SHARE] = SoakShare(named.get(item.nodeid, equal))
        property_test = getattr(getattr(item, "obj", None), "hypothesis", None)
        if property_test is not None:
            property_test.inner_test = until_time_is_up(
                property_test.inner_test, item.stash[SHARE].left
            )


def named_seconds(item: pytest.Item) -> float:
    """What a test asks for (`soak(seconds=150)`), but never more than a quarter of the soak."""
    marker = item.get_closest_marker("soak")
    return min(float(marker.kwargs.get("seconds", 0)), SOAK_SECONDS / 4) if marker else 0.0


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Starts a soak test's time; skips it where the whole soak's time is up."""
    share = item.stash.get(SHARE, None)
    if share is not None:
        share.start()
        if share.left() <= 0:
            pytest.skip("the soak's time is up")


@pytest.fixture
def soak_seconds_left(request: pytest.FixtureRequest) -> Callable[[], float]:
    """For soak tests without Hypothesis: stop when this gives 0 or less."""
    item: pytest.Item = request.node
    return item.stash.get(SHARE, SoakShare(SOAK_SECONDS)).left


class TimeIsUp(SkipTest):
    """Ends a property test at once: of all exceptions Hypothesis lets only skips through."""


def until_time_is_up(test: Callable[..., Any], left: Callable[[], float]) -> Callable[..., Any]:
    """The test, ended after the example in which its time ran out, unless one has failed before."""
    failed = False

    @functools.wraps(test)
    def bounded(*args: object, **kwargs: object) -> Any:
        nonlocal failed
        try:
            test(*args, **kwargs)
        except Exception:
            failed = True
            raise
        if left() <= 0 and not failed:
            raise TimeIsUp("no example failed")

    return bounded


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """A property that held until its time was up has passed."""
    try:
        return (yield)
    except TimeIsUp:
        return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tests that count something say how much (`record_property("told", …)`)."""
    reports = terminalreporter.getreports("passed")
    lines = [text for report in reports for name, text in report.user_properties if name == "told"]
    for line in lines:
        terminalreporter.write_line(str(line))
