"""A transcript as text: words wrapped, tools and results a line each, the answer set apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.cli.output import cells, count, cut, paint, safe, width, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlane.model.documents.parts import CountersDocument
    from fairlane.model.documents.tasks import EntryDocument

_GUTTER = len("12:00:00  ")
#: Least columns for the first line of a result.
_RESULT_MIN = 20


class TranscriptText:
    """Shows entries in turn; the last words are kept back, because they may be the answer."""

    def __init__(self, full: bool) -> None:
        self._full = full  # whole results
        self._kept: list[EntryDocument] = []  # words, and the turn that they ended

    def lines(self, entries: Iterable[EntryDocument]) -> Iterator[str]:
        """What can be shown when these have come."""
        for entry in entries:
            if entry["kind"] == "answer":
                yield from self._answer(entry)
            elif entry["kind"] == "said" or not (self._kept and entry["kind"] == "turn"):
                yield from self.rest()
                if entry["kind"] == "said":
                    self._kept = [entry]
                else:
                    yield self._shown(entry)
            else:
                self._kept.append(entry)

    def rest(self) -> Iterator[str]:
        """What was kept back."""
        kept, self._kept = self._kept, []
        for entry in kept:
            yield self._shown(entry)

    def _answer(self, entry: EntryDocument) -> Iterator[str]:
        """The answer apart from all before it; words that say the same are left out."""
        if self._kept and self._kept[0]["text"].strip() == entry["text"].strip():
            del self._kept[0]
        yield from self.rest()
        rule = "─" * (width() - len("── answer "))
        yield "\n" + paint(f"── answer {rule}", "bold", "green")
        yield _paragraphs(entry["text"].strip("\n"), 0) + _cut_off(entry)

    def _shown(self, entry: EntryDocument) -> str:
        kind, text = entry["kind"], entry["text"]
        if kind == "line":
            return safe(text.expandtabs()) + _cut_off(entry)
        if kind == "result":
            return self._result(entry)
        at = entry["at"]
        time = f"{at[11:19]}  " if at else " " * _GUTTER
        if kind == "said":
            words = _paragraphs(text, _GUTTER)
        elif kind == "tool":
            words = _tool(safe(entry["tool"] or ""), safe(entry["argument"] or ""))
        elif kind == "turn":
            words = paint(f"── {safe(text)}{_tokens(entry['tokens'])}", "dim")
        else:
            words = (
                paint("error:", "red") + _paragraphs(text, _GUTTER, len("error: "))[_GUTTER + 6 :]
            )
        return paint(time, "dim") + words.lstrip(" ") + _cut_off(entry)

    def _result(self, entry: EntryDocument) -> str:
        """A line of it, and how many there are more."""
        text = entry["text"] if entry["text"].strip() else "(nothing)"
        lines = text.expandtabs().split("\n")
        bar = " " * _GUTTER + "│ "
        if self._full:
            return "\n".join(paint(bar + safe(line), "dim") for line in lines) + _cut_off(entry)
        told = next((at for at, line in enumerate(lines) if line.strip()), 0)
        more = len(lines) - 1
        rest = f"  … {count(more, 'line')} more" if more else ""
        room = max(_RESULT_MIN, width() - len(bar) - len(rest))
        first = cut(safe(lines[told]), room)
        return paint(bar + first + rest, "dim") + _cut_off(entry)


def _tool(name: str, argument: str) -> str:
    room = width() - _GUTTER - cells(name) - 2
    return paint(name, "bold", "cyan") + (f"  {cut(argument, max(_RESULT_MIN, room))}".rstrip())


def _paragraphs(text: str, indent: int, before: int = 0) -> str:
    """Lines that fit the width; short ones stay as they are. `before`: columns that are taken."""
    shown = []
    for number, line in enumerate(text.expandtabs().split("\n")):
        lead = " " * (indent + (0 if number else before))
        words = safe(line).rstrip()
        fits = cells(lead + words) <= width()
        shown.append(lead + words if fits else wrapped(words, indent, lead))
    return "\n".join(line.rstrip() for line in shown)


def _tokens(tokens: CountersDocument | None) -> str:
    if tokens is None:
        return ""
    words = [f"{tokens['input'] + tokens['cache_write']:,} in", f"{tokens['output']:,} out"]
    words += [f"{tokens['cache_read']:,} cached"] if tokens["cache_read"] else []
    return ": " + ", ".join(words)


def _cut_off(entry: EntryDocument) -> str:
    return paint(" … (cut off: too long)", "dim") if entry["truncated"] else ""
