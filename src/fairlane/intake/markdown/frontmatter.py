"""Front matter and history of a Markdown file: read as written, changed a key or a line at a time.

A changed file differs in that key's value alone: order, comments, quoting, line ends, a missing
last line end, a byte order mark and the body stay as they are.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from fairlane.model.errors import Invalid

if TYPE_CHECKING:
    import yaml

_OPENING = re.compile(r"\ufeff?---[ \t]*(\r?\n)")
_CLOSING = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._/-]*[A-Za-z0-9._/-])?")
_HISTORY = re.compile(r"^(?:#+[ \t]+)?History:?[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_AFTER_HISTORY = re.compile(r"^(?:#+[ \t].*|[A-Z][\w ]*:[ \t]*\r?)$", re.MULTILINE)
_BY_HAND = "Edit it by hand; nothing was changed."
#: YAML does not let a value begin with `@`, but people write names so: it is read as this sign,
#: which takes up the same place.
_AT = "\ue000"


class Page(NamedTuple):
    """A Markdown file in three parts; put together they are the file again."""

    opening: str  # the first fence, with everything before it
    head: str  # the YAML
    rest: str  # the second fence and the body

    @property
    def body(self) -> str:
        """The text below the front matter."""
        return _CLOSING.sub("", self.rest, count=1)

    @property
    def line_end(self) -> str:
        """How lines end in this file."""
        return "\r\n" if self.opening.endswith("\r\n") else "\n"

    def fields(self) -> dict[str, object]:
        """The keys with their values: text as it was written, true, false, null, lists, tables."""
        document = _parse(self.head, "get_single_data")
        if document is None:
            return {}
        if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
            raise Invalid(
                "front matter is no table of names", "Write it as lines of `name: value`."
            )
        return document

    def text(self) -> str:
        """The whole file."""
        return self.opening + self.head + self.rest


def split(text: str) -> Page | None:
    """The parts of a file; None: it has no front matter."""
    opening = _OPENING.match(text)
    if opening is None:
        return None
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        raise Invalid("front matter is not closed", "End it with a line `---`.")
    return Page(opening[0], text[opening.end() : closing.start()], text[closing.start() :])


def put(text: str, key: str, value: str) -> str:
    """The file with one key set to a text; every other byte stays."""
    page = split(text)
    if page is None:
        raise Invalid("there is no front matter", _BY_HAND)
    before = page.fields()
    if before.get(key) == value:
        return text
    place = _place(page.head, key)
    if place is None:
        line = f"{' ' * _indent(page.head)}{key}: {_scalar(value)}{page.line_end}"
        changed = page._replace(head=page.head + line)
    else:
        start, end = place
        space = "" if page.head[start - 1].isspace() else " "
        changed = page._replace(head=page.head[:start] + space + _scalar(value) + page.head[end:])
    _check(changed, before | {key: value}, key)
    return changed.text()


def _check(page: Page, expected: dict[str, object], key: str) -> None:
    """What was written must read as it was meant, whatever the file looks like."""
    again = split(page.text())
    try:
        good = again == page and page.fields() == expected
    except Invalid:
        good = False
    if not good:
        raise Invalid(f"{key!r} cannot be set in this front matter", _BY_HAND)


def _parse(head: str, how: str) -> object:
    """What the parser makes of the YAML; what it cannot read is named."""
    import yaml

    try:
        loader = _loader()(head if _AT in head else head.replace("@", _AT))
        try:
            return getattr(loader, how)()
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Invalid(f"front matter is not YAML: {_told(error)}", "Mend it.") from error


def _place(head: str, key: str) -> tuple[int, int] | None:
    """The place of the value of a key; None: there is no such key."""
    import yaml

    node = _parse(head, "get_single_node")
    if not isinstance(node, yaml.MappingNode):
        return None
    for name, value in node.value:
        if name.value == key:
            start, end = value.start_mark.index, value.end_mark.index
            if not isinstance(value, yaml.ScalarNode) or "\n" in head[start:end]:
                raise Invalid(f"the value of {key!r} is not one line", _BY_HAND)
            return start, end
    return None


def _indent(head: str) -> int:
    """How far the keys are moved in."""
    mark = getattr(_parse(head, "get_single_node"), "start_mark", None)
    return 0 if mark is None else int(mark.column)


def _scalar(value: str) -> str:
    """A text as YAML, plain where it can be."""
    import yaml

    loader = _loader()
    if _PLAIN.fullmatch(value) and yaml.load(value, loader) == value:  # noqa: S506 - a safe loader
        return value
    written: str = yaml.safe_dump(value, default_style='"', width=float("inf"))
    return written.rstrip("\n")


def _told(error: BaseException) -> str:
    """The parser's message in one line."""
    from fairlane.intake.yaml_once import problem_of

    return problem_of(error, lines_above=1).replace(_AT, "@")


@cache
def _loader() -> type[yaml.SafeLoader]:
    """A safe loader that leaves dates and numbers as text, and knows no aliases."""
    import yaml

    from fairlane.intake.yaml_once import OnceLoader

    class Loader(OnceLoader):
        def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
            if self.check_event(yaml.AliasEvent):  # a small file could become a huge value
                raise yaml.MarkedYAMLError(problem="an alias is not read here")
            return super().compose_node(parent, index)

        def __init__(self, head: str) -> None:
            super().__init__(head)
            self._sign = _AT if "@" not in head else ""  # else the file has that sign itself

        def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> str:
            text = str(super().construct_scalar(node))
            return text.replace(self._sign, "@") if self._sign else text

    Loader.yaml_implicit_resolvers = {}
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:bool",
        re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
        list("tTfF"),
    )
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]
    )
    return Loader


class _Section(NamedTuple):
    """The place of the history in a page: its title, its first line, and what follows it."""

    title: int
    lines: int
    end: int


def history_lines(body: str) -> list[str]:
    """The lines of its history, the newest last."""
    place = _history(body)
    lines = body[place.lines : place.end].split("\n") if place else []
    return [line.strip() for line in lines if line.strip()]


def without_history(body: str) -> str:
    """A page without its history."""
    place = _history(body)
    if place is None:
        return body
    return f"{body[: place.title].rstrip()}\n\n{body[place.end :]}"


def with_history_line(body: str, line: str, line_end: str) -> str:
    """A page with one line more; the section is made at the end where there is none."""
    place = _history(body)
    if place is None:
        gap = "" if not body or body.endswith("\n") else line_end
        return f"{body}{gap}{line_end}History:{line_end}{line}{line_end}"
    before = body[: place.end].rstrip()
    return f"{before}{line_end}{line}{body[len(before) :]}"


def _history(body: str) -> _Section | None:
    """The last history section: each of its lines is a day and what happened on it."""
    titles = list(_HISTORY.finditer(body))
    if not titles:
        return None
    after = _AFTER_HISTORY.search(body, titles[-1].end())
    return _Section(titles[-1].start(), titles[-1].end(), after.start() if after else len(body))
