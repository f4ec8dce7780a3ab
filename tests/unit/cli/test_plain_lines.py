"""A command line that is read without click is the call that click would make of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any
from unittest import mock

import click
from hypothesis import given
from hypothesis import strategies as st

from fairlane.cli import quick
from fairlane.cli.call import COMMON, Call
from fairlane.cli.commands import fairlane
from fairlane.cli.main import VERBS
from fairlane.cli.verb import Verb
from fairlane.model.errors import FairlaneError

VERBS_READ = ("add", "list", "show", "status", "why")
KNOWN: dict[str, Verb] = {
    each.name: each
    for name in VERBS_READ
    for each in vars(import_module(f"fairlane.cli.{VERBS[name][0]}")).values()
    if isinstance(each, Verb)
}
OPTIONS = COMMON | {name: how for verb in KNOWN.values() for name, how in verb.options.items()}
FLAGS = [flag for option in OPTIONS for flag in option.split("/")]
TIME = "2026-01-30T12:00:00Z"
TEXTS = st.one_of(
    st.sampled_from(["", "-", "t1", "x", "5", "-3", "1_000", " 7", "0", "none", "a=b", TIME]),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
#: A verb, options that there are or are not, with and without values, and arguments.
WORDS = st.one_of(
    st.sampled_from(FLAGS),
    st.sampled_from(FLAGS),
    st.builds("{}={}".format, st.sampled_from(FLAGS), TEXTS),
    st.sampled_from([*VERBS_READ, "--", "--help", "-h", "--nothing", "-x", "--jso", "lease"]),
    TEXTS,
)
LINES = st.builds(
    lambda before, verb, after: [*before, verb, *after],
    st.lists(WORDS, max_size=2),
    st.sampled_from(VERBS_READ),
    st.lists(WORDS, max_size=7),
)


@contextmanager
def recorded(verbs: Iterator[Verb] | Sequence[Verb]) -> Iterator[list[tuple[str, Any, Any]]]:
    """Each function only tells how it was called."""
    calls: list[tuple[str, Any, Any]] = []

    def recorder(verb: Verb) -> Any:
        @wraps(verb.function)
        def record(call: Call, /, **values: object) -> None:
            calls.append((verb.name, told(call), values))

        return record

    clean = {key: value for key, value in os.environ.items() if not key.startswith("FAIRLANE_")}
    with mock.patch.dict(os.environ, clean, clear=True):
        patches = [mock.patch.object(verb, "function", recorder(verb)) for verb in verbs]
        for patch in patches:
            patch.start()
        try:
            yield calls
        finally:
            for patch in patches:
                patch.stop()


def told(call: Call) -> tuple[object, ...]:
    return call.home, call.db, call.url, call.json, call.fixed_now, call.words


def by_click(line: list[str]) -> list[tuple[str, Any, Any]]:
    """What click calls, if anything."""
    with recorded(list(KNOWN.values())) as calls, mock.patch("click.echo"):
        try:
            fairlane.main(line, prog_name="fairlane", standalone_mode=False)
        except (click.ClickException, FairlaneError):
            assert not calls
    return calls


def by_itself(line: list[str]) -> list[tuple[str, Any, Any]] | None:
    """What is called without click; None: it is left to click."""
    with recorded(list(KNOWN.values())) as calls:
        plain = quick.read(line, VERBS)
        if plain is None:
            return None
        assert plain.perform() == 0
    return calls


@given(LINES)
def test_what_is_read_is_what_click_reads(line: list[str]) -> None:
    calls = by_itself(line)
    assert calls is None or calls == by_click(line)


@st.composite
def plain_lines(draw: st.DrawFn) -> list[str]:
    """A verb with options that it has, and values that they take."""
    verb = KNOWN[draw(st.sampled_from(VERBS_READ))]
    before = [word for option in draw(options(COMMON)) for word in option]
    parts = draw(options(verb.options | COMMON))
    if verb.argument is not None:
        text = st.sampled_from(["t1", "Fix it", "-", "", "a=b"])
        parts.insert(draw(st.integers(0, len(parts))), [draw(text)])
    rest = ["--", *draw(st.lists(TEXTS, max_size=3))] if verb.rest and draw(st.booleans()) else []
    return [*before, verb.name, *(word for part in parts for word in part), *rest]


def options(table: dict[str, dict[str, Any]]) -> st.SearchStrategy[list[list[str]]]:
    """Some of these options, each as it may be written."""

    def written(option: str) -> st.SearchStrategy[list[str]]:
        how = table[option]
        if "/" in option or how.get("is_flag"):
            return st.sampled_from([[flag] for flag in option.split("/")])
        values = ["1", "07"] if how.get("type") is int else ["x", "", "a b", "-", "--json", "a=b"]
        text = st.sampled_from([TIME] if option == "--now" else values)
        return text.flatmap(lambda value: st.sampled_from([[option, value], [f"{option}={value}"]]))

    return st.lists(st.sampled_from(list(table)).flatmap(written), max_size=4)


@given(plain_lines())
def test_a_plain_line_needs_no_click(line: list[str]) -> None:
    calls = by_itself(line)
    assert calls is not None
    assert len(calls) == 1
    assert calls == by_click(line)


def test_what_is_left_to_click() -> None:
    for line in (
        [], ["--help"], ["status", "--help"], ["lease"], ["logs", "t1"], ["statsu"], ["why"],
        ["list", "--limit", "0"], ["list", "--limit", "x"], ["add", "a", "b"],
        ["list", "--proj", "p"], ["status", "--json=1"], ["status", "--now", "soon"],
        ["list", "--limit"], ["--", "status"],
    ):  # fmt: skip
        assert by_itself(line) is None, line
    for name in ("FAIRLANE_LEASE", "_FAIRLANE_COMPLETE"):
        with mock.patch.dict(os.environ, {name: "x"}):
            assert quick.read(["status"], VERBS) is None
