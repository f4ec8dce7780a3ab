"""Bug: a mistake that an engineer could make, planted into the real code for a while."""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any

Function = Callable[..., Any]
Planter = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Bug:
    """One mistake: what is wrong, which promises may say so, and how it is planted."""

    name: str
    wrong: str
    breaks: tuple[str, ...]  # names of promises; any of them is the right reason
    changes: tuple[Planter, ...]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The code has this bug while the block runs."""
        with ExitStack() as stack:
            for change in self.changes:
                stack.enter_context(change())
            yield


def bug(name: str, wrong: str, breaks: str, *changes: Planter) -> Bug:
    """A bug; `breaks`: promises by name, separated by commas."""
    return Bug(name, wrong, tuple(word.strip() for word in breaks.split(",")), changes)


def line(function: Function, *pairs: tuple[str, str]) -> Planter:
    """Parts of the text of a function are other ones: each old part is there exactly once.

    Both are given without the indentation of the function's body.
    """

    @contextmanager
    def planted() -> Iterator[None]:
        real = inspect.unwrap(function)
        before = real.__code__
        real.__code__ = _changed_code(real, pairs)
        try:
            yield
        finally:
            real.__code__ = before

    return planted


def entry(table: MutableMapping[Any, Any], key: object, value: object) -> Planter:
    """A table has another entry, or one more."""

    @contextmanager
    def planted() -> Iterator[None]:
        before = dict(table)
        table[key] = value
        try:
            yield
        finally:
            table.clear()
            table.update(before)

    return planted


def _indented(part: str) -> str:
    return part.replace("\n", "\n    ")


def _changed_code(function: Function, pairs: tuple[tuple[str, str], ...]) -> CodeType:
    """What a function would be if its text were another one."""
    text = textwrap.dedent(inspect.getsource(function))
    for old, new in (map(_indented, pair) for pair in pairs):
        if text.count(old) != 1:
            there = text.count(old)
            raise LookupError(f"{function.__qualname__} has {there} times: {old}")
        text = text.replace(old, new)
    code = function.__code__
    flags = __future__.annotations.compiler_flag
    module = compile(text, code.co_filename, "exec", flags, dont_inherit=True)
    return next(
        part
        for part in module.co_consts
        if isinstance(part, CodeType) and part.co_name == code.co_name
    )
