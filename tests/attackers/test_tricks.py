"""A malicious agent with hundreds of tricks: none of them harms anything but its own attempt."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairlane.runtime.lock import holder
from tests.attackers.tricks import list_asking, list_git, list_inside, list_rest
from tests.attackers.tricks.ground import Ground
from tests.attackers.tricks.trick import Trick, batches, some

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
#: What is tried together, under one daemon.
PARTS: dict[str, list[Trick]] = {
    "programs": list_git.PROGRAMS,
    "elsewhere": list_git.ELSEWHERE,
    "git folders": list_git.FOLDERS,
    "work trees": list_git.TREES,
    "folders and output": list_rest.FOLDERS,
    "processes": list_rest.PROCESSES,
    "asking": list_asking.TRICKS,
}
#: Parts of many attempts, most with a repository of its own: `make test` makes a third of them for
#: each sort of deed, the soak the others.
LONG = ("programs", "elsewhere", "git folders", "work trees", "folders and output")


def test_the_list_of_tricks_is_whole() -> None:
    for tricks in ([trick for part in PARTS.values() for trick in part], list_inside.TRICKS):
        assert len({trick.name for trick in tricks}) == len(tricks)
        assert all(
            trick.says and trick.must_fail in ("always", "sandboxed", "bwrap") for trick in tricks
        )
        assert len(tricks) >= 200
    assert min(len(list_inside.tricks_in(kind)) for kind in ("bwrap", "landlock")) >= 200


@pytest.mark.parametrize("part", LONG)
def test_a_sample_has_every_sort_and_the_soak_has_the_rest(part: str) -> None:
    assert_parted(PARTS[part], sample(part), others(part))
    assert not batches(sample(part)).keys() & batches(others(part)).keys()


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_so_has_a_sample_in_a_sandbox(kind: str) -> None:
    tricks = list_inside.tricks_in(kind)
    assert_parted(tricks, some(tricks), without(tricks, some(tricks)))


def assert_parted(whole: list[Trick], sampled: list[Trick], rest: list[Trick]) -> None:
    assert {trick.deed for trick in sampled} == {trick.deed for trick in whole}
    assert Counter(sampled) + Counter(rest) == Counter(whole)
    assert len(rest) > 0


def without(tricks: list[Trick], tried: list[Trick]) -> list[Trick]:
    """What `make test` leaves to the soak."""
    names = {trick.name for trick in tried}
    return [trick for trick in tricks if trick.name not in names]


def sample(part: str) -> list[Trick]:
    return some(PARTS[part], attempts=True)


def others(part: str) -> list[Trick]:
    return without(PARTS[part], sample(part))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user with a home folder of their own; nothing of it outlives the test."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    yield tmp_path
    told = holder(tmp_path / "home")
    if told and told["pid"]:
        with suppress(ProcessLookupError):
            os.kill(told["pid"], signal.SIGKILL)


def tell(record: Callable[[str, object], None], where: str, tricks: list[Trick]) -> None:
    """The tally that is printed at the end."""
    groups = Counter(trick.group for trick in tricks)
    listed = ", ".join(f"{group} {count}" for group, count in sorted(groups.items()))
    record("told", f"tricks of a malicious agent, {where}: {len(tricks)} held ({listed})")


@pytest.mark.parametrize(
    ("part", "executor"), [*((part, "process") for part in PARTS), ("processes", "tmux")]
)
def test_no_trick_harms_anything_outside(
    part: str, executor: str, root: Path, record_property
) -> None:
    if executor == "tmux" and shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    tricks = sample(part) if part in LONG else PARTS[part]
    holds(root, tricks, executor, record_property)


@pytest.mark.soak(seconds=10)
@pytest.mark.parametrize("part", LONG)
def test_no_other_trick_harms_anything_outside(part: str, root: Path, record_property) -> None:
    holds(root, others(part), "process", record_property)


def holds(root: Path, tricks: list[Trick], executor: str, record_property) -> None:
    """All of these, with a daemon of their own, harm nothing."""
    ground = Ground(root, tricks, f'executor = "{executor}"\n')
    before = ground.digest()
    ground.attack()
    assert ground.harm(before) == {}
    if tricks is PARTS["asking"]:  # what nobody sees was accepted, and is shown
        children = ground.children()
        assert r"ad\u200bmin" in children["name-title-zero-width-child"]
        assert r"\ufeffad\ufeffmin" in children["name-title-mark-child"]
    tell(record_property, f"{executor}, no sandbox", ground.tricks)


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_an_agent_in_a_sandbox_reads_no_secret_and_writes_nothing_outside(
    kind: str, root: Path, monkeypatch: pytest.MonkeyPatch, record_property
) -> None:
    """Every third trick of each sort; the soak tries the others."""
    reads_nothing(kind, some(list_inside.tricks_in(kind)), root, monkeypatch, record_property)


@pytest.mark.soak(seconds=10)
@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_nor_by_any_other_trick(
    kind: str, root: Path, monkeypatch: pytest.MonkeyPatch, record_property
) -> None:
    tricks = list_inside.tricks_in(kind)
    reads_nothing(kind, without(tricks, some(tricks)), root, monkeypatch, record_property)


def reads_nothing(
    kind: str, tricks: list[Trick], root: Path, monkeypatch: pytest.MonkeyPatch, record_property
) -> None:
    settings = f'[sandbox]\nkind = "{kind}"\nread = ["{sys.base_prefix}"]\n'
    ground = Ground(root, tricks, settings)
    monkeypatch.setenv("PRIVATE_WORD", ground.canary("environment"))
    before = ground.digest()
    ground.attack()
    assert ground.harm(before) == {}
    # For Landlock the list of processes is no file: it hides no command line, and says so.
    looks = any(trick.name == "reads-environments" for trick in tricks)
    assert ground.leaked().keys() == ({"line"} if kind == "landlock" and looks else set())
    assert ground.strays() == {}
    tell(record_property, kind, ground.tricks)


def test_the_same_tricks_are_seen_to_succeed_without_a_sandbox(
    root: Path, monkeypatch: pytest.MonkeyPatch, record_property
) -> None:
    """The control: whatever says above that a trick held says here that it did not."""
    ground = Ground(root, list_inside.control(), "")
    monkeypatch.setenv("PRIVATE_WORD", ground.canary("environment"))
    before = ground.digest()
    ground.attack()
    assert ground.leaked().keys() == {"ssh", "store", "work", "token", "environment", "line"}
    assert ground.strays().keys() == set(list_inside.STRAYING.values())
    seen = {trick.name for trick in ground.tricks} - {"reads-environments", *list_inside.STRAYING}
    assert ground.harm(before).keys() == seen
    count = len(ground.tricks)
    record_property("told", f"control, no sandbox: {count} of {count} tricks seen to succeed")
