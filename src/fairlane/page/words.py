"""Words: numbers, lengths, times and statuses as people read them on the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from urllib.parse import quote, urlencode

from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND, Instant, Micros, to_datetime
from fairlane.page.html import Html, tag

#: Number of project colours.
COLOURS = 8
#: The part of an instant that people do not read.
_FRACTION = re.compile(r"(T\d\d:\d\d:\d\d)\.\d+Z")


def length(micros: Micros) -> str:
    """A length in its two largest units: `4s`, `1m 05s`, `2h 10m`, `3d 4h`."""
    seconds = max(0, micros) // SECOND
    if seconds < 60:
        return f"{seconds}s"
    if micros < HOUR:
        return f"{seconds // 60}m {seconds % 60:02}s"
    if micros < DAY:
        return f"{micros // HOUR}h {micros % HOUR // MINUTE:02}m"
    return f"{micros // DAY}d {micros % DAY // HOUR}h"


def short(number: float) -> str:
    """A number in at most four letters: `940`, `12.4k`, `1.2M`."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            part = number / size
            return f"{part:.0f}{letter}" if part >= 100 else f"{part:.1f}{letter}"
    return f"{number:.0f}"


def dollars(amount: float | None) -> str:
    """Money; a dash where it is unknown."""
    if amount is None:
        return "–"
    return f"${amount:,.0f}" if amount >= 1000 else f"${amount:.2f}"


def count(number: int, one: str, many: str = "") -> str:
    """`1 task`, `3 tasks`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def ticking(when: Instant, until: bool = False) -> Html:
    """An age or a countdown that the browser keeps going; the text is its own."""
    text = to_datetime(when).isoformat(timespec="seconds")
    key = "data_until" if until else "data_since"
    return tag("time", class_="num", datetime=text, **{key: when // 1000})


def moment(when: Instant, zone: tzinfo | None = None) -> Html:
    """A time of day, with the day where it is another one; shown in the reader's own zone."""
    local = to_datetime(when).astimezone(zone)
    clock = f"{local:%H:%M:%S}"
    return tag("time", clock, class_="num", datetime=local.isoformat(), data_at=when // 1000)


def midnight(now: Instant) -> Instant:
    """When today began here."""
    here: datetime = to_datetime(now).astimezone()
    start = here.replace(hour=0, minute=0, second=0, microsecond=0)
    return round(start.timestamp()) * SECOND


def colour(name: str, known: list[str]) -> str:
    """The class of a project's colour: by its place among all, so that few share one."""
    place = known.index(name) if name in known else sum(map(ord, name))
    return f"c{place % COLOURS}"


def task_address(task: str) -> str:
    """Where a task is shown."""
    return f"/task/{quote(task, safe='')}"


def raw_address(task: str, attempt: int, **more: str) -> str:
    """Where the file lies that an attempt has written, or one of its checks."""
    return f"/page/raw?{urlencode({'task': task, 'attempt': attempt, **more})}"


def task_link(task: str, *words: Html | str, class_: str = "") -> Html:
    """A link to one task."""
    return tag("a", *(words or (task,)), href=task_address(task), class_=class_ or None)


def sentence(words: str) -> str:
    """Words as a sentence."""
    text = plain(words)
    return text[:1].upper() + text[1:]


def plain(words: str) -> str:
    """Words without the part of a time that nobody reads; they may begin with a name."""
    return _FRACTION.sub(r"\1Z", words)


def numbers(query: Mapping[str, str], *names: str) -> dict[str, int]:
    """The numbers among the fields of a query."""
    found = {name: query.get(name, "") for name in names}
    return {
        name: int(text[:16]) for name, text in found.items() if text.isascii() and text.isdigit()
    }


def file_of(query: Mapping[str, str] | None) -> str | None:
    """The file that a query names; no path is longer."""
    return (query or {}).get("file", "")[:4096] or None
